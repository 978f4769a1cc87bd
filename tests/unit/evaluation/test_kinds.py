"""`kinds`: what it says of languages and kinds of text agrees with slow, obvious ways to the same figures."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
import pytest
from typer.testing import CliRunner
from typer.testing import Result as Outcome

from ttmark.evaluation.answers import answers_of
from ttmark.evaluation.cells import SETTINGS, Cell, SamplingSetting, Setting
from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.conformance.languages import language_of
from ttmark.evaluation.entropy import supports_along
from ttmark.evaluation.experiments import kinds
from ttmark.evaluation.kinds import QUESTIONS_PATH, Kind, read_questions
from ttmark.evaluation.options import CHAT_PROMPTS_PATH
from ttmark.evaluation.profiles import Profile
from ttmark.evaluation.receipts import receipt_rows
from ttmark.evaluation.report.result import Result
from ttmark.evaluation.run import Completion, CompletionFile
from ttmark.evaluation.simulated import SimulatedSource
from ttmark.shared.watermark import detect_direct

SETTING = SamplingSetting(50, 0.95, 1.0)
PER_KIND = 12


def test_the_kinds_come_in_turn_as_often_as_each_other() -> None:
    questions = read_questions(QUESTIONS_PATH)
    counts = Counter(question.kind for question in questions)
    assert set(counts.values()) == {PER_KIND}
    assert len({question.prompt for question in questions}) == len(questions)
    for start in range(0, len(questions), len(counts)):
        assert {question.kind for question in questions[start : start + len(counts)]} == set(counts)


def test_english_is_asked_for_in_the_chat_template_and_other_prose_begins_in_its_language() -> None:
    chat = orjson.loads(CHAT_PROMPTS_PATH.read_bytes().splitlines()[0])["prompt"]
    opening = chat[: chat.index("user\n") + len("user\n")]
    for question in read_questions(QUESTIONS_PATH):
        if question.kind.language == "en":
            assert question.prompt.startswith(opening)
            assert question.prompt.endswith("<|im_end|>\n<|im_start|>assistant\n")
        else:
            assert language_of(question.prompt) == question.kind.language, question.prompt


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind("en", "prose"), "The leaves of the tree are red, and they fall in autumn."),
        (Kind("de", "prose"), "Die Blätter sind rot, und im Herbst fallen sie von den Bäumen."),
        (Kind("en", "dialogue"), 'Anna: Where is it?\n\n**Mr. Bell:** There.\n"Thank you," she said.'),
        (Kind("en", "code"), "def half(x):\n    y = x / 2\n    return y\n\nprint(half(3))"),
        (Kind("en", "list"), "Here they are:\n1. Soap\n2. A towel\n- Socks"),
        (Kind("en", "json"), '{"name": "Rome", "country": "Italy", "sights": []}'),
    ],
)
def test_each_kind_knows_its_own_and_no_other(kind: Kind, text: str) -> None:
    assert kind.has(text)
    others = [Kind("en", "dialogue"), Kind("en", "code"), Kind("en", "list"), Kind("en", "json")]
    assert not any(other.has(text) for other in (*others, Kind("fr", "prose")) if other != kind)


def test_a_file_of_questions_names_what_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"language": "en", "kind": "sonnet", "prompt": "Sing."}\n')
    with pytest.raises(ValueError, match="'sonnet' is none of prose, dialogue"):
        read_questions(path)
    path.write_text('{"language": "en", "prompt": "Sing."}\n')
    with pytest.raises(ValueError, match="line 1: not an object with the field `kind`"):
        read_questions(path)
    path.write_text("")
    with pytest.raises(ValueError, match="holds no question"):
        read_questions(path)


class DropsTheFirst:
    """A tokenizer that reads a text without its first token."""

    def decode(self, ids: list[int]) -> str:
        return " ".join(map(str, ids))

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()[1:]]


def test_an_answer_ends_before_its_end_and_is_read_from_its_words() -> None:
    source = SimpleNamespace(tokenizer=DropsTheFirst(), end_tokens=frozenset({7, 8}))
    lab: Any = SimpleNamespace(source=source, run=SimpleNamespace(seed=0))
    texts = [Completion(0, (3, 4, 8, 5, 7), 0, 0.0, 0), Completion(1, (3, 4), 0, 0.0, 0)]
    texts.append(Completion(2, (7, 1), 0, 0.0, 0))
    answers = answers_of(lab, Cell("gumbel", 2, SETTING, 5), texts)
    assert [answer.tokens.tolist() for answer in answers] == [[3, 4], [3, 4], []]
    assert [answer.read.tolist() for answer in answers] == [[4], [4], []]
    assert [answer.changed for answer in answers] == [True, True, False]
    assert len({answer.key for answer in answers}) == 3


def test_receipts_are_grouped_by_their_words_and_counted_by_what_was_found() -> None:
    predicted = np.array([-30.0, -12.0, -8.0, -7.9, -5.0, -4.9, -1.0, 0.0])
    found = {"direct": predicted + 0.3, "aligned": np.zeros(8)}
    rows = receipt_rows("gumbel", predicted, found)
    assert [(row.word, row.above, row.up_to, row.texts) for row in rows] == [
        ("strong", None, -12.0, 2),
        ("strong", -12.0, -8.0, 1),
        ("weak", -8.0, -5.0, 2),
        ("none", -5.0, -3.0, 1),
        ("none", -3.0, 0.0, 2),
    ]
    assert [row.direct.estimate for row in rows] == [1.0, 1.0, 0.5, 0.0, 0.0]
    assert [row.direct_pool.estimate for row in rows] == [1.0, 1.0, 0.5, 0.0, 0.0]
    assert all(row.aligned.estimate == row.aligned_pool.estimate == 0.0 for row in rows)
    nearly = receipt_rows("gumbel", np.array([-6.0]), {"direct": np.array([-6.0]), "aligned": np.zeros(1)})
    assert (nearly[0].direct.estimate, nearly[0].direct_pool.estimate) == (1.0, 0.0)


QUESTIONS = [{"language": "en", "kind": kind, "prompt": f"w{n}"} for n, kind in enumerate(["prose", "code"])]
PROFILES = (kinds.NOW, Profile("gumbel", 1, 2))


def asked(folder: Path, *texts: str) -> Outcome:
    """The command on the simulated model, with a few short texts of two kinds."""
    file = folder / "questions.jsonl"
    if not file.exists():
        file.write_bytes(b"\n".join(map(orjson.dumps, QUESTIONS)))
    options = ["--model", "simulated", "--setting", "default", "--length", "20", "--length", "60"]
    given = ["kinds", "--questions", str(file), "--out", str(folder), *options]
    return CliRunner().invoke(eval_app(), [*given, *(word for count in texts for word in ("--texts", count))])


def test_every_kind_is_measured_under_every_profile_and_what_is_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "PROFILES", PROFILES)
    outcome = asked(tmp_path, "3", "2")
    assert outcome.exit_code == 0, outcome.output
    files = sorted((tmp_path / "kinds" / "texts").glob("*.jsonl"))
    before = [path.read_bytes() for path in files]
    assert len(files) == 2
    data = Result.load(tmp_path / "kinds.json").data
    rows, receipts = [row for row in data if "kind" in row], [row for row in data if "word" in row]
    assert [(row["kind"], row["texts"], row["bits"] is None) for row in rows] == [
        ("prose", 3, False),
        ("code", 3, False),
        ("prose", 2, True),
        ("code", 2, True),
    ]
    assert sum(row["texts"] for row in receipts) == 10
    assert asked(tmp_path, "3", "2").exit_code == 0
    assert [path.read_bytes() for path in files] == before
    _agrees_with_texts_one_by_one(tmp_path, rows[0], receipts)


def _agrees_with_texts_one_by_one(folder: Path, row: dict[str, Any], receipts: list[dict[str, Any]]) -> None:
    """The first row is of every other text; its figures by the longest way."""
    cell, source = PROFILES[0].cell(SETTINGS[Setting.DEFAULT], 60), SimulatedSource()
    texts = CompletionFile(folder / "kinds" / "texts" / f"{cell.name}.jsonl").read()
    watermark, log10_p, bits, candidates = cell.watermark(), {}, [], []
    for index, text in texts.items():
        key = cell.key(0, index)
        log10_p[index] = [detect_direct(watermark, key, text.token_ids[:end]).log10_p for end in (20, 60)]
    # Entropy is along one text per question: of prose that is the first.
    for support in supports_along(source.language_model, cell.setting, source.prompts[0], texts[0].token_ids):
        bits.append(-sum(p * np.log2(p) for p in support.probs))
        candidates.append(len(support.ids))
    prose = np.array([log10_p[index] for index in (0, 2, 4)])
    assert row["found"][0][0]["estimate"] == pytest.approx((prose[:, 0] + np.log10(16) <= -3).mean())
    assert row["found"][1][1]["estimate"] == pytest.approx((prose[:, 1] + np.log10(16) <= -5).mean())
    assert row["decades"]["estimate"] == pytest.approx(np.median(prose[:, 1]) / 0.6)
    assert row["bits"]["estimate"] == pytest.approx(np.mean(bits))
    assert row["candidates"]["estimate"] == pytest.approx(np.mean(candidates))
    words = Counter(
        "strong" if last <= -8 else "weak" if last <= -5 else "none" for _, last in log10_p.values()
    )
    told = [one for one in receipts if one["profile"] == str(PROFILES[0])]
    for word in words:
        assert sum(one["texts"] for one in told if one["word"] == word) == words[word]


def test_a_folder_of_other_questions_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "PROFILES", PROFILES[:1])
    assert asked(tmp_path, "2").exit_code == 0
    (tmp_path / "questions.jsonl").write_bytes(orjson.dumps({**QUESTIONS[0], "prompt": "w9"}))
    outcome = asked(tmp_path, "2")
    assert outcome.exit_code == 1
    assert "another questions; choose another --out" in outcome.output
