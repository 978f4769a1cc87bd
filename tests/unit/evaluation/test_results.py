"""`ttmark eval results`: marks of others are the others', its detectors find them, and the command."""

import re
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import orjson
import pytest
import torch
from transformers import SynthIDTextWatermarkLogitsProcessor, WatermarkLogitsProcessor
from typer.testing import CliRunner

from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.experiment_cells import SETTINGS, Setting
from ttmark.evaluation.quality import peers
from ttmark.evaluation.quality.peers import KgwMark, PeerMark, SynthidMark, VllmMark
from ttmark.evaluation.results.experiment import Marked, found_together, peoples_accounts
from ttmark.services.evaluated_detection import Service
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest
from ttmark.shared.watermark.prf import key_lanes

VOCABULARY = 64
KEYS = [bytes([number]) * 16 for number in range(40)]
MARKS = {"vllm": VllmMark(), "two keys": VllmMark(0.3), "synthid": SynthidMark(), "kgw": KgwMark(VOCABULARY)}


def written(mark: PeerMark, key: bytes, length: int = 120) -> np.ndarray:
    """A text of a model that finds sixteen tokens equally likely, others each time."""
    draws, tracker, tokens = np.random.default_rng(key[0]), mark.tracker(), list[int]()
    lanes = key_lanes(key)[None]
    while len(tokens) < length:
        kept, probs = draws.choice(VOCABULARY, 16, replace=False), np.full(16, 1 / 16)
        context = tracker.next_context(tokens)
        if context is not None:
            probs = mark.reweight(lanes, np.array([context]), kept[:, None], probs, np.array([0, 16]))
        tokens.append(int(draws.choice(kept, p=probs)))
    return np.array(tokens)


@pytest.mark.parametrize("name", MARKS)
def test_the_others_own_detector_and_our_likelihood_ratio_find_the_mark_under_its_key_alone(
    name: str,
) -> None:
    mark, (key, *others) = MARKS[name], KEYS
    text = written(mark, key)
    assert mark.own_log10_p(key, text) < -8
    wrong = [mark.own_log10_p(other, text) for other in others]
    assert min(wrong) > -4
    if mark.has_likelihood:
        found = LikelihoodTest(mark, text, rate=1e-5).under([key, *others])
        assert found.p_of_keys[0] < -5
        assert found.p_of_keys[1:].min() > -4
    else:
        with pytest.raises(NotImplementedError, match="does not read this mark"):
            mark.score(key_lanes(key), text[:4, None], text[1:5, None])


@pytest.mark.parametrize(
    ("name", "keeps"), [("vllm", True), ("two keys", True), ("synthid", True), ("kgw", False)]
)
def test_over_keys_the_distribution_is_the_models_where_the_mark_says_so(name: str, keeps: bool) -> None:
    mark, probs = MARKS[name], np.array([0.6, 0.25, 0.1, 0.05])
    draws = np.random.default_rng(0)
    # To see that a distribution is another takes fewer keys, and its keys take transformers 10 ms each.
    lanes = draws.integers(1 << 62, size=(2_000 if keeps else 400, 2))
    context = np.tile(np.arange(1, mark.context_width + 1), (len(lanes), 1))
    blocks = np.tile([[3], [17], [40], [41]], (len(lanes), 1))
    given = lanes, context, blocks, np.tile(probs, len(lanes)), np.arange(len(lanes) + 1) * 4
    weighted = mark.reweight(*given).reshape(-1, 4)
    off = np.abs(weighted.mean(axis=0) - probs) / (weighted.std(axis=0) / np.sqrt(len(lanes)))
    assert (off.max() < 4) == keeps


def test_transformers_marks_are_those_of_its_own_processors() -> None:
    """Over the whole vocabulary, of which the filters left some tokens."""
    kept, context = np.array([3, 17, 40, 41]), np.array([5, 6, 7, 8])
    probs = np.random.default_rng(0).dirichlet(np.ones(len(kept)))
    lanes = key_lanes(KEYS[2])
    number = peers._number(lanes)
    scores = torch.full((1, VOCABULARY), -torch.inf, dtype=torch.float64)
    scores[0, torch.from_numpy(kept)] = torch.from_numpy(np.log(probs))
    synthid = SynthIDTextWatermarkLogitsProcessor(
        5, peers._synthid(number)[1].keys.tolist(), 1 << 16, 0, 1024, torch.device("cpu")
    )
    for token in context.tolist():  # the first call has no context yet
        synthid(torch.tensor([[token]]), torch.zeros(1, VOCABULARY))
    synthid.state.context = torch.tensor([[0, *context[:-1]]])
    kgw = WatermarkLogitsProcessor(VOCABULARY, "cpu", 0.25, 2.0, number, "lefthash", 1)
    for mark, processor in (("synthid", synthid), ("kgw", kgw)):
        own = context[-MARKS[mark].context_width :]
        ours = MARKS[mark].reweight(lanes[None], own[None], kept[:, None], probs, np.array([0, 4]))
        theirs = processor(torch.tensor([[context[-1]]]), scores)[0].softmax(dim=-1)
        assert ours == pytest.approx(theirs[torch.from_numpy(kept)].numpy(), rel=1e-5)
        assert ours != pytest.approx(probs)


def test_others_begin_as_theirs_do_and_green_lists_alone_mark_a_context_again() -> None:
    text = [1, 2, 3, 4, 9, 1, 2, 3, 4]
    first = {name: mark.tracker().next_context([]) for name, mark in MARKS.items()}
    assert first == {"vllm": (-1,) * 4, "two keys": (-1,) * 4, "synthid": (0,) * 4, "kgw": None}
    again = {}
    for name, mark in MARKS.items():
        tracker = mark.tracker()
        again[name] = [tracker.next_context(text[:end]) for end in (4, 9)][1] is not None
    assert again == {"vllm": False, "two keys": False, "synthid": False, "kgw": True}


def test_a_key_writes_as_many_texts_as_the_cell_says() -> None:
    cell = Marked(None, 1, SETTINGS[Setting.SMOLLM2], 40, of_key=3)
    pools = [cell.pool(0, index) for index in (0, 2, 3)]
    assert pools[0] == pools[1] != pools[2]
    assert len({*pools[0], *cell.pool(0, 0, 1), *cell.pool(1, 0)}) == 12


def test_answers_that_are_asked_about_together_are_different_ones_of_one_account() -> None:
    asked: list[list[int]] = []

    def finds(texts: list[str], index: int, fpr: float) -> bool:
        assert fpr == 1e-5
        places = [int(Counter(re.findall(r"\d+", text)).most_common(1)[0][0]) for text in texts]
        assert len({*places}) == len(places)
        assert {place // 40 for place in places} == {index // 40}
        asked.append(places)
        return len(texts) >= 4

    texts = [" ".join([str(number)] * 20) for number in range(80)]
    found = {
        (share, answers): found_together(finds, texts, answers, share, 6, 0).share.estimate  # type: ignore[arg-type]
        for share in (0.0, 0.1)
        for answers in (1, 2, 4, 16)
    }
    assert {share for (_, answers), share in found.items() if answers < 4} == {0.0}
    assert {share for (_, answers), share in found.items() if answers >= 4} == {1.0}
    assert {place // 40 for places in asked for place in places} == {0, 1}


def test_accounts_of_people_share_quotations_and_nothing_else() -> None:
    accounts = list(islice(peoples_accounts(60, 0), 60))
    assert all(5 <= len(texts) <= 20 for texts in accounts)
    texts = [text for account in accounts for text in account]
    shared = [text for text in {*texts} if texts.count(text) > 1]
    assert 20 < len(shared) <= 50
    assert 0.25 < sum(texts.count(text) for text in shared) / len(texts) < 0.42
    assert all(30 <= len(text.split()) <= 80 for text in texts)


@pytest.mark.long
def test_the_command_writes_asks_and_resumes(tmp_path: Path) -> None:
    arms = [word for arm in ("ours", "vllm", "kgw", "dipmark:2") for word in ("--arm", arm)]
    sizes = ["--texts", "3", "--length", "20", "--length", "40", "--of-kinds", "20", "--accounts", "1"]
    given = ["results", "--model", "demo", "--threads", "1", "--out", str(tmp_path), "--peoples", "3"]
    done = CliRunner().invoke(eval_app(Service), [*given, *sizes, *arms])
    assert done.exit_code == 0, done.output
    texts = {path: path.read_bytes() for path in (tmp_path / "texts").glob("*.jsonl")}
    assert len(texts) == 5
    lengths = [len(orjson.loads(line)["token_ids"]) for one in texts.values() for line in one.splitlines()]
    assert {*lengths} == {40, 50}
    page = (tmp_path / "results.md").read_text()
    for words in ("Answers of 20 tokens", "Answers of 40 tokens", "Accounts of texts by people", "DiPmark"):
        assert words in page
    data = orjson.loads((tmp_path / "results.json").read_bytes())["data"]
    asked = {(row["arm"], row["detector"], row["reader"], row["keys"]) for row in data if "detector" in row}
    assert asked == {
        ("ours", "the service", "no reader", 1),
        ("ours", "the service", "no reader", 4),
        ("ours", "the service", "the writer", 4),
        ("ours", "our likelihood ratio", "no reader", 1),
        ("vllm", "its own", "no reader", 1),
        ("vllm", "our likelihood ratio", "no reader", 1),
        ("kgw", "its own", "no reader", 1),
        ("dipmark:2", "our likelihood ratio", "no reader", 1),
    }
    again = CliRunner().invoke(eval_app(Service), [*given, *sizes, *arms])
    assert again.exit_code == 0, again.output
    assert {path: path.read_bytes() for path in texts} == texts
    refused = CliRunner().invoke(eval_app(Service), [*given, "--seed", "1"])
    (line,) = refused.output.strip().splitlines()
    assert (refused.exit_code, "another seed" in line, "choose another --out" in line) == (1, True, True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--texts", "1"), 2, "'--texts'"),
        (("--length", "0"), 2, "'--length'"),
        (("--arm", "rot13"), 1, "--arm rot13: there are ours, "),
        (("--arm", "rot13:2"), 1, "rot13"),
        (("--reader", "gemma"), 1, "give a name and a model"),
    ],
)
def test_a_wrong_option_is_one_line(
    tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = CliRunner().invoke(
        eval_app(Service), ["results", "--model", "demo", "--out", str(tmp_path), *arguments]
    )
    assert done.exit_code == code
    assert message in done.output
    assert isinstance(done.exception, SystemExit)
