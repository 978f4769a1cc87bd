"""`ttmark eval quality` on made-up data with known truth, and on an engine."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import orjson
import pytest
from typer.testing import CliRunner

from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.experiment_cells import SamplingSetting
from ttmark.evaluation.quality import measures
from ttmark.evaluation.quality.arms import EACH, KINDS, ONE_KEY, AnswerSource, Arm
from ttmark.evaluation.quality.equivalence import Difference, Margin, holm, judged
from ttmark.evaluation.run_folder import GeneratedText
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH, PROMPTS_PATH
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.services.evaluated_detection import Service

LENGTH = Margin("length", "tokens")
SHARE = Margin("share", "%", event=True)
Values = tuple[np.ndarray, np.ndarray, list[int]]


def made_up(seed: int, clusters: int, change: float, common: float = 0.0, each: int = EACH) -> Values:
    """Marked and unmarked lengths of mean 100; pairs of a cluster have a change of their own in common."""
    draws = np.random.default_rng(seed)
    of_prompt = np.repeat(draws.normal(0, 30, clusters), each)
    of_key = np.repeat(draws.normal(0, common, clusters), each)
    unmarked, marked = 100 + of_prompt + draws.normal(0, 10, (2, clusters * each))
    return marked + change + of_key, unmarked, np.repeat(np.arange(clusters), each).tolist()


@pytest.mark.parametrize(
    ("clusters", "change", "common", "verdict"),
    [
        (200, 0.0, 2.0, "equivalent within"),
        (200, 1.5, 2.0, "equivalent within"),  # surely a change, and surely less than the margin
        (200, 9.0, 2.0, "changed by +"),
        (200, -9.0, 2.0, "changed by -"),
        (10, 0.0, 20.0, "undecided, "),
    ],
)
def test_the_verdict_on_a_known_truth(clusters: int, change: float, common: float, verdict: str) -> None:
    one = Difference.of(LENGTH, *made_up(1, clusters, change, common))
    assert one is not None
    (found,) = judged([one], clusters * EACH)
    assert str(found).startswith(verdict)
    assert found.stored()["verdict"] == str(found)


@pytest.mark.parametrize(("change", "rate"), [(5.0, 0.05), (0.0, 0.05)])
def test_false_claims_are_as_rare_as_promised_though_answers_of_a_cluster_are_alike(
    change: float, rate: float
) -> None:
    """A true change of the whole margin is called equal, and none a change, in 5 % of samples at most."""
    claims, naive = 0, 0
    for seed in range(600):
        marked, unmarked, clusters = made_up(seed, 40, change, common=6)
        one = Difference.of(Margin("length", "tokens", 0.0, 5.0), marked, unmarked, clusters)
        alone = Difference.of(Margin("length", "tokens", 0.0, 5.0), marked, unmarked, range(len(marked)))
        assert one is not None
        assert alone is not None
        claims += (one.p_unequal if change else one.p_unchanged) <= rate
        naive += (alone.p_unequal if change else alone.p_unchanged) <= rate
    assert 600 * rate * 0.5 < claims < 600 * rate * 1.6
    assert naive > 600 * rate * 2, "the clusters of this test would not matter"


def test_so_many_answers_have_the_power_that_a_pilot_promises() -> None:
    margin = Margin("length", "tokens", 0.02)
    pilot = Difference.of(margin, *made_up(0, 300, 0.0))
    assert pilot is not None
    clusters = round(pilot.pairs_needed(1) / EACH)
    shown = [Difference.of(margin, *made_up(seed, clusters, 0.0)) for seed in range(1, 401)]
    assert 0.84 < np.mean([one is not None and one.p_unequal <= 0.05 for one in shown]) < 0.97


def test_a_sample_without_an_event_is_no_proof_and_few_clusters_say_nothing() -> None:
    ones, clusters = np.ones(24), list(range(24))
    rare = Difference.of(SHARE, ones, ones, clusters)
    assert rare is not None
    assert rare.p_unequal > 0.05
    assert Difference.of(SHARE, ones, ones, [place % 9 for place in clusters]) is None
    missing = np.where(np.arange(24) < 15, np.nan, 1.0)
    assert Difference.of(SHARE, missing, ones, clusters) is None


def test_holm_multiplies_the_smallest_by_the_number_and_keeps_the_order() -> None:
    assert holm([0.03, 0.01, 0.04, 0.9]) == pytest.approx([0.09, 0.04, 0.09, 0.9])


def test_measures_of_answers() -> None:
    looping = GeneratedText(0, (1, 2, 3, 4) * 3)
    found = measures.measured([looping, GeneratedText(1, (1, 2, 3))], 12)
    assert found[measures.LENGTH].tolist() == [12, 3]
    assert found[measures.AT_LIMIT].tolist() == [1, 0]
    assert found[measures.REPETITION].tolist() == [pytest.approx(5 / 9), 0]
    shares = measures.distinct(["a", "a", "b", "c", *"defgh"[:4]] * 2, 8, 4)
    assert shares[[0, 8]].tolist() == [0.75, 0.75]
    assert np.isnan(np.delete(shares, [0, 8])).all()
    texts = ["It is Paris.", "Parisian", "PARIS"]
    assert measures.matches(texts, ["Paris", "Paris", "paris"]).tolist() == [1, 0, 1]
    assert np.isnan(measures.matches(["x"], [None])).all()
    lacking = measures.unlisted(["it\u2019s a wrod", "42!"], {"it's", "a"}.__contains__)
    assert lacking[0] == pytest.approx(1 / 3)
    assert np.isnan(lacking[1])


def test_surprise_is_of_a_token_so_a_long_answer_counts_for_more_and_its_error_is_that_of_a_ratio() -> None:
    assert measures.per_token(np.array([2.0, 1.0, 0.0]), np.array([1.0, 3.0, 2.0, 5.0]))[:2].mean() == 1.25
    draws = np.random.default_rng(0)

    def sample() -> tuple[np.ndarray, np.ndarray]:
        sizes = draws.integers(1, 100, 300).astype(float)
        return 5 + draws.normal(0, 1, 300) / np.sqrt(sizes) + (sizes < 10), sizes

    pooled = [float(np.average(nats, weights=sizes)) for nats, sizes in (sample() for _ in range(2_000))]
    said = np.mean([measures.per_token(*sample()).std() / np.sqrt(300) for _ in range(50)])
    assert said == pytest.approx(np.std(pooled), rel=0.1)
    known = measures.per_token(np.array([0.0, 3.0]), np.ones(3))
    assert np.isnan(known[[0, 2]]).all()
    assert known[1] == 3


def test_a_word_that_the_lists_encoding_cannot_write_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As hunspell's English list, which is in Latin-1."""

    class Latin1:
        def __init__(self, *_: object, **__: object) -> None: ...

        def spell(self, word: str) -> bool:
            return bool(word.encode("latin-1"))

    monkeypatch.setitem(sys.modules, "hunspell", SimpleNamespace(Hunspell=Latin1))
    listed = measures.word_list("en_US")
    assert listed is not None
    assert [listed(word) for word in ("na\u00efve", "\u010fakujem")] == [True, False]


def test_the_one_to_be_convicted_marks_a_context_that_comes_again_and_ours_does_not() -> None:
    text = [1, 2, 3, 4, 1, 2, 3, 4]
    for kind, marked in (("ours", False), ("gumbel", True), ("synthid", False)):
        tracker = KINDS[kind].watermark().tracker()
        before = [tracker.next_context(text[:end]) for end in range(0, 8, 2)]
        assert tracker.next_context(text) == ((1, 2, 3, 4) if marked else None), (kind, before)


def test_ours_is_marked_as_a_new_key_of_the_service() -> None:
    source = AnswerSource(str(DEMO_MODEL_PATH), PROMPTS_PATH, EngineSettings())
    arm = Arm(None, 1, SamplingSetting(50, 0.9, 0.7, 1.1), 64, kind="ours")
    asked = [source.request(arm, index, 0) for index in range(2 * EACH)]
    markings = [one.marking for one in asked]
    (mark,) = {(one.watermark.scheme, one.watermark.block_size, one.opening_bits) for one in markings if one}
    assert mark == ("gumbel", 2, 8.0)
    assert all(one.sampling.repetition_penalty == 1.1 and not one.sampling.ignore_eos for one in asked)
    keys = [one.prf_key for one in markings if one]
    assert len({*keys[ONE_KEY:EACH]}) == EACH - ONE_KEY
    assert len({one.prompt_ids for one in asked[:EACH]}) == 1 != len({one.prompt_ids for one in asked})
    gumbel = Arm(None, 1, arm.setting, 64, kind="gumbel")
    repeated = [source.request(gumbel, index, 0).marking for index in range(ONE_KEY)]
    assert len({one.prf_key for one in repeated if one}) == 1
    assert source.request(Arm(None, 1, arm.setting, 64), 0, 0).marking is None


@pytest.mark.long
def test_the_command_convicts_resumes_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measures, "word_list", lambda _: None)
    out = tmp_path / "run"

    def call(*more: str) -> str:
        size = ("--answers", "80", "--tokens", "12", "--threads", "1")
        options = (*size, "--model", "demo", "--out", str(out))
        result = CliRunner().invoke(eval_app(Service), ["quality", *options, *more])
        assert result.exit_code == ("nothing" in more[-1]), result.output
        return result.output

    for wrong in ("nothing", "ours:nothing"):
        assert "there are ours, gumbel, synthid" in call("--arm", wrong)
    call("--arm", "gumbel")
    first = {path.name: path.read_bytes() for path in (out / "texts").glob("*.jsonl")}
    call("--arm", "gumbel:160", "--arm", "ours")
    assert all((out / "texts" / name).read_bytes().startswith(content) for name, content in first.items())
    page = (out / "quality.md").read_text()
    assert page.index("Margins") < page.index("ours, as by default")
    for words in ("(give --judge)", "(pip install chunspell)", "exact match (no prompt has an `answer`)"):
        assert words in page
    data = orjson.loads((out / "quality.json").read_bytes())["data"]
    verdicts = {(one["arm"], one["difference"]["margin"]["measure"]): one["verdict"] for one in data}
    assert {one["arm"]: one["answers"] for one in data} == {"gumbel": 160, "ours": 80}
    assert verdicts["gumbel", measures.DISTINCT.measure].startswith("changed by -")
