"""Attack reports: the catalogue, the detectors, a run that goes on, and what its page says first."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from rich.progress import Progress

from tests.harness.imports import ROOT
from ttmark.evaluation.adversaries.catalogue import (
    COPIES,
    DEAR,
    MODELS,
    Attack,
    Verdict,
    attacks,
    removed_by_questions,
    stitched,
)
from ttmark.evaluation.conformance.attacks import AttackRun, Row, collected
from ttmark.evaluation.conformance.detectors import (
    NoAnswer,
    by_command,
    by_service,
    told_by_service,
    told_once,
    translated_by,
)
from ttmark.evaluation.conformance.figures import Figure
from ttmark.evaluation.conformance.page import FAILS, HOLDS, WEAKENED, attacks_page
from ttmark.evaluation.conformance.quality_after_attacks import QualityChange, QualityLeft
from ttmark.evaluation.endpoint import Endpoint, EndpointClient
from ttmark.evaluation.intervals import Interval
from ttmark.evaluation.run_folder import Questions
from ttmark.evaluation.synonyms import Synonyms
from ttmark.evaluation.text_edits import Material, sentences_of
from ttmark.evaluation.unmarked_texts import TextSet
from ttmark.services.features.conformance.conformance_attacks import Attacked, attacks_report
from ttmark.shared.client import Client

TEXT = (
    '## The slow walk\n\n**Walking** is - in my view - a *good* way to think (and "rest"). It makes people'
    " slow. They reconsider what they want.\n\n- first, the café\n- then the garden\n\nAnother part follows."
    " It is short."
)
MATERIAL = Material.of(["some other words that people wrote about the weather and the sea " * 40])
SYNONYMS = Synonyms({"walk": ["stroll"], "good": ["fine"], "garden": ["yard"], "people": ["folk"]})


def endpoint(folder: Path, asked: list[dict[str, Any]] | None = None) -> EndpointClient:
    """Says the last line of a prompt in capitals."""

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        if asked is not None:
            asked.append(body)
        content = body["messages"][0]["content"].partition("\n\n")[2].upper() + f" {body.get('seed', '')}"
        return httpx.Response(200, json={"choices": [{"message": {"content": content}}]})

    service = Endpoint("http://endpoint/v1", "m", body={"watermark": {"enabled": False}})
    return EndpointClient(service, folder, transport=httpx.MockTransport(answer))


def catalogue(folder: Path) -> dict[str, Attack]:
    stolen = [TEXT.upper(), "Another answer. It was stolen. " * 5]
    of = attacks(SYNONYMS, str.upper, endpoint(folder), lambda _: True, stolen)
    return {one.name: one for one in of}


NAMES = list(catalogue(Path()))


def attacked(attack: Attack, strength: float, text: str = TEXT, seed: int = 4) -> str:
    return attack.edit(text, strength, MATERIAL, np.random.default_rng(seed))


@pytest.mark.parametrize("name", NAMES)
def test_an_attack_changes_a_text_and_follows_from_its_seed(name: str, tmp_path: Path) -> None:
    attack = catalogue(tmp_path)[name]
    assert sorted(attack.strengths) in (list(attack.strengths), list(attack.strengths[::-1]))
    assert len({attack.title(strength) for strength in attack.strengths}) == len(attack.strengths)
    strongest = attack.strengths[-1]
    assert attacked(attack, strongest) == attacked(attack, strongest) != TEXT
    for text in ("", "word", "天空是蓝色的。"):
        assert isinstance(attacked(attack, strongest, text), str)


def test_what_is_copied_keeps_its_words_and_loses_its_form(tmp_path: Path) -> None:
    of = catalogue(tmp_path)
    shown = attacked(of["shown as a web page and copied"], 1.0)
    assert shown.startswith("The slow walk\n\nWalking is - in my view - a good way")
    assert "first, the café\nthen the garden" in shown
    quoted = attacked(of["sent by mail"], 2.0)
    assert all(line.startswith("> > ") for line in quoted.splitlines())
    assert max(map(len, quoted.splitlines())) <= 72 + len("> > ")
    for width in (90.0, 40.0):
        printed = attacked(of["printed to PDF and copied"], width)
        assert printed.split() == TEXT.split()
        assert 0.6 * width < max(map(len, printed.splitlines())) <= width
    assert {one.name for one in of.values() if one.kind == COPIES} == {
        "quotes, dashes and spaces retyped",
        "Markdown's signs and line breaks removed",
        "shown as a web page and copied",
        "sent by mail",
        "printed to PDF and copied",
    }


def test_a_model_rewrites_a_share_of_the_sentences_and_is_asked_once(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []
    of = {one.name: one for one in attacks(rewriter=endpoint(tmp_path, asked)) if one.kind == MODELS}
    assert "translated there and back" in of
    every = attacked(of["said in other words"], 1.0)
    assert every.isupper()
    assert all(one["watermark"] == {"enabled": False} for one in asked)
    before = len(asked)
    some = attacked(of["said in other words"], 0.3)
    assert not some.isupper()
    assert any(word.isupper() and len(word) > 3 for word in some.split())
    assert len(asked) == before, "a sentence was asked about again"
    assert attacked(of["said in other words as a whole"], 1.0).startswith("## THE SLOW WALK")


def test_a_command_translates_in_place_of_the_model(tmp_path: Path) -> None:
    def command(code: str) -> str:
        return f'{sys.executable} -c "import sys; {code}"'

    translated = translated_by(command("print(sys.stdin.read().upper(), end='')"))
    every = list(attacks(translated=translated, rewriter=endpoint(tmp_path, [])))
    (there_and_back,) = (one for one in every if one.name == "translated there and back")
    assert attacked(there_and_back, 1.0) == TEXT.upper()
    assert there_and_back.cost not in DEAR, "a command is run for every text"
    for code, said in (("sys.exit('broken')", "--translator: exit code 1: broken"), ("0", "printed nothing")):
        with pytest.raises(NoAnswer, match=said):
            translated_by(command(code))("text")


def test_collected_answers_differ_by_their_seed_and_are_kept(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []
    client = endpoint(tmp_path, asked)
    texts = [collected(client, ["a\n\nb", "c\n\nd"], 20, Progress(disable=True)) for _ in range(2)]
    assert texts[0] == texts[1] == [f"{'BD'[number % 2]} {number}" for number in range(20)]
    assert len(asked) == 20


def test_a_command_is_a_detector() -> None:
    code = "import sys; text = sys.stdin.read(); print(1e-6 if 'mark' in text else 0.5)"
    ask = by_command(f'{sys.executable} -c "{code}"')
    assert ask(None, ["a mark, naïve", "none"]) == pytest.approx([-6.0, np.log10(0.5)])
    for code, said in (
        ("print('yes')", "prints no p-value"),
        ("print(2)", "printed 2.0"),
        ("raise SystemExit('broken')", "exit code 1: broken"),
    ):
        with pytest.raises(NoAnswer, match=said):
            by_command(f'{sys.executable} -c "{code}"')(None, ["text"])
    assert by_command(f'{sys.executable} -c "print(0.0)"')(None, [""]) == [-300.0]


def test_who_does_not_see_evidence_is_refused_and_a_limit_of_questions_is_no_verdict(tmp_path: Path) -> None:
    with (
        service_client(["detect"], []) as client,
        pytest.raises(NoAnswer, match="lacks the scope detect:evidence"),
    ):
        by_service(client, (), (1e-2,))
    limit = {"error": {"message": "ask later", "type": "rate_limit_error", "code": "rate_limited"}}
    late = httpx.Response(429, json=limit, headers={"Retry-After": "43200"})
    with service_client(["detect"], [late]) as client:
        verdict = told_once(told_by_service(client, (), 1e-5), tmp_path)
        assert verdict("text") is None
        assert verdict("text") is None, "asked again"
    kept = told_once(lambda _: True, tmp_path)
    assert (kept("text"), kept("other")) == (None, True)
    with (
        service_client(["detect", "detect:evidence"], []) as client,
        pytest.raises(NoAnswer, match="would not"),
    ):
        told_by_service(client, (), 1e-5)


@pytest.mark.parametrize("needed", [1, 5, 24, 70])
def test_questions_find_how_many_words_have_to_go(needed: int) -> None:
    text, asked = " ".join(f"w{number}" for number in range(100)), list[str]()

    def found(variant: str) -> bool:
        asked.append(variant)
        return changed(variant) < needed

    def changed(variant: str) -> int:
        return 100 - len(set(variant.split()) & set(text.split()))

    def removed(questions: float, verdict: Verdict) -> str:
        return removed_by_questions(verdict)(text, questions, MATERIAL, np.random.default_rng(1))

    assert changed(removed(40.0, found)) == max(2, needed), "more is gone than has to be"
    assert len(asked) < 20
    assert len(removed(40.0, found).split()) == 100
    asked.clear()
    removed(3.0, found)
    assert len(asked) <= 3
    assert changed(removed(40.0, lambda _: None)) == 2, "without an answer the first try is what there is"
    assert changed(removed(40.0, lambda _: True)) == 100, (
        "a detector that finds everything is asked to the end"
    )
    answers = iter([True, False, None])
    assert changed(removed(40.0, lambda _: next(answers))) == 4, "what was said before the limit counts"


def test_a_stitched_text_is_made_of_other_answers_alone() -> None:
    stolen = [f"This is {name} one. It has {name} more. And {name} ends." for name in ("a", "b", "c", "d")]
    generator = np.random.default_rng(1)
    forged = stitched(stolen)("of nine words here that stand for a text", 2.0, MATERIAL, generator)
    parts = [one.strip() for one in sentences_of(forged)]
    assert len(parts) == len(set(parts)) == 3
    assert set(parts) <= {one.strip() for answer in stolen for one in sentences_of(answer)}
    assert len({name for one in parts for name in "abcd" if f" {name} " in one}) == 2


def service_client(scopes: Sequence[str], answers: list[httpx.Response]) -> Client:
    limits = {"documents": 1, "document_tokens": 1, "body_bytes": 1}
    known = {"keys": [], "scopes": list(scopes), "limits": limits}

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=known) if request.method == "GET" else answers.pop(0)

    return Client("http://service", "ttm_a", transport=httpx.MockTransport(answer))


def gone(text: str, _: float, __: Material, ___: np.random.Generator) -> str:
    return text.replace("mark", "mild")


def weaker(text: str, _: float, __: Material, generator: np.random.Generator) -> str:
    return text.replace("mark", "mild") if generator.random() < 0.3 else text


TRIED = (
    Attack("words", "rewritten to nothing", "an afternoon", gone, "{:.0%}", (0.1, 0.5)),
    Attack("words", "weaker", "an hour", weaker),
    Attack("letters and signs", "nothing done", "nothing", lambda text, *_: text, "{:.0%}", (0.1, 0.2)),
)
TEXTS = tuple(f"text {number} has a mark" for number in range(40))


def run(folder: Path, ask: Callable[[None, Sequence[str]], list[float]], seed: int = 0) -> list[Row]:
    progress = Progress(disable=True)
    return list(
        AttackRun(
            texts=TextSet("marked", "forty texts", TEXTS),
            people=TextSet("people", "by people", ("nothing here",) * 40),
            attacks=TRIED,
            questions=Questions(folder, ask, progress),
            quality=QualityChange(str, None, None, 0, 0),
            material=MATERIAL,
            seed=seed,
            model_texts=10,
            progress=progress,
        ).measure()
    )


def by_word(_: None, texts: Sequence[str]) -> list[float]:
    return [-9.0 if "mark" in text else -0.3 for text in texts]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    rows = run(tmp_path_factory.mktemp("run"), by_word)
    about = Attacked(
        "<b>a model</b>",
        TextSet("marked", "forty texts", TEXTS),
        {"command": "p-value"},
        {},
        ["Not run: synonyms."],
    )
    return attacks_report(about, rows, seed=3, command="ttmark", seconds=9.0, signing_key="k")


def test_the_page_says_first_where_the_mark_fails(report: dict[str, Any]) -> None:
    page = attacks_page(report)[0]
    assert "default-src 'none'" in page
    assert "<b>" not in page
    body = page.partition("</style>")[2]
    places = [
        body.index(words) for words in (FAILS, WEAKENED, HOLDS, "<table", "Methods", "Not run: synonyms")
    ]
    assert places == sorted(places)
    fails, weakened, holds = (body[a:b] for a, b in pairwise(places[:4]))
    assert (
        "Rewritten to nothing, 10%: 0 of 40 texts are found at one false alarm in 100,000"
        " (0.0\u00a0% [0.0, 8.8]), 0 at one in 100. 80% of the words are left. It costs an afternoon."
    ) in fails
    assert "As written: 40 of 40 texts are found at one false alarm in 100,000" in fails
    assert "Weaker: " in weakened
    assert "Nothing done, 20%: 40 of 40" in holds
    assert body.count("not measured") >= 2 * 7
    assert "Not run: a model that is trained or steered" in body
    assert not any(text in page for text in TEXTS)


def test_of_attacks_that_remove_the_mark_the_one_that_leaves_most_comes_first(report: dict[str, Any]) -> None:
    def row(name: str, words: float, similarity: float | None) -> Row:
        kept = [
            None if value is None else Interval(value, value, value) for value in (words, similarity, None)
        ]
        assert kept[0] is not None
        figures = tuple(Figure("words", name, rate, 40, 1) for rate in (1e-2, 1e-5))
        return Row("words", name, name, "nothing", figures, QualityLeft(kept[0], *kept[1:]))

    rows = [row("destroyed", 0.9, 0.1), row("same meaning", 0.2, 0.95)]
    stored = {"attacks": [*report["attacks"], *(one.stored() for one in rows)]}
    figures = {"figures": [*report["figures"], *(f.stored() for one in rows for f in one.figures)]}
    body = attacks_page(report | stored | figures)[0]
    assert body.index("Same meaning") < body.index("Rewritten to nothing") < body.index("Destroyed")


@pytest.mark.skipif(not all(map(shutil.which, ("openssl", "perl"))), reason="needs openssl and perl")
def test_openssl_verifies_a_report_as_the_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs/conformance.md").read_text()
    (block,) = re.findall(r"^```bash\n(.*?)^```$", page, re.M | re.S)
    results = ROOT / "docs/results"
    report = (results / "attacks.json").read_text()
    shutil.copy(results / "attacks.pem", tmp_path / "case-public.pem")

    def said(text: str) -> str:
        (tmp_path / "report.json").write_text(text)
        ran = subprocess.run(["bash", "-c", block], cwd=tmp_path, capture_output=True, text=True)
        return ran.stdout.strip()

    assert said(report) == "Signature Verified Successfully"
    assert said(report.replace('"found": 2', '"found": 3', 1)) == "Signature Verification Failure"
