"""A conformance run measures what it says, goes on where it stopped, and agrees with an independent one."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.harness.simulated_conformance import PLAN, TOKENIZER, simulated_key, simulated_run
from ttmark.detect_service.ask import ask_here
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.detect_service.options import DetectionOptions
from ttmark.detect_service.question import Question
from ttmark.evaluation.conformance.answer_language import NAMES, language_of
from ttmark.evaluation.conformance.figures import Figure, compare, figures_of
from ttmark.evaluation.conformance.measure import (
    ALL,
    CONFORMANCE_EDITS,
    DEPLOYED_SECTION,
    FRESH_SECTION,
    LENGTH,
    SAMPLING,
    MeasuredRun,
)
from ttmark.evaluation.conformance.page import in_a_line, promise_kept
from ttmark.evaluation.conformance.plan import PLANS, prompt_of, prompts
from ttmark.evaluation.text_edits import Material
from ttmark.evaluation.unmarked_texts import own_set, passages_of, shipped_sets
from ttmark.services.features.conformance.conformance_run import detection
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.schemas.detection.detect import Document

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [tmp_path_factory.mktemp(f"run-{seed}") for seed in range(2)]


@pytest.fixture(scope="module")
def runs(folders: list[Path]) -> list[MeasuredRun]:
    """Two runs of one deployment with different seeds."""
    return [simulated_run(folder, seed).measure() for seed, folder in enumerate(folders)]


def figure(measured: MeasuredRun, section: str, name: str, rate: float) -> Figure:
    (found,) = (
        one
        for one in measured.figures
        if (one.section, one.rate) == (section, rate) and one.name.startswith(name)
    )
    return found


def test_two_independent_runs_agree_in_every_figure(runs: list[MeasuredRun]) -> None:
    found = compare(runs[0].figures, runs[1].figures)
    assert 60 < len(found.differences) == len(runs[0].figures) == len(runs[1].figures)
    assert found.outside == []
    counts = [[one.found for one in measured.figures] for measured in runs]
    assert counts[0] != counts[1], "the second run repeats the first"


def test_marked_answers_are_compared_with_unmarked_ones_to_the_same_prompts(runs: list[MeasuredRun]) -> None:
    """All of the simulated model's have the same length."""
    for measured in runs:
        assert {one.difference.pairs for one in measured.quality} == {PLAN.unmarked}
        verdicts = {one.difference.margin.measure: str(one) for one in measured.quality}
        assert verdicts["length"] == "equivalent within 4 tokens"
        shown = "\n".join(in_a_line(one.stored()) for one in measured.quality)
        assert all(f"{measure}: {verdict}." in shown for measure, verdict in verdicts.items())


@pytest.mark.slow
def test_a_run_of_another_deployment_does_not_agree(runs: list[MeasuredRun], tmp_path: Path) -> None:
    other = simulated_run(tmp_path, 2, marks=simulated_key(bytes(32))).measure()
    outside = compare(runs[0].figures, other.figures).outside
    assert {one.first.section for one in outside} >= {SAMPLING, LENGTH}


def test_marked_answers_are_found_and_others_as_rarely_as_promised(runs: list[MeasuredRun]) -> None:
    for measured in runs:
        assert figure(measured, SAMPLING, "OpenAI's default", 1e-2).interval.low > 0.5
        for section, keys in ((FRESH_SECTION, PLAN.fresh_keys), (DEPLOYED_SECTION, 1)):
            found = figure(measured, section, ALL, 1e-2)
            assert found.texts == keys * (20 + PLAN.unmarked)
            assert found.interval.low <= 1e-2


def test_a_text_is_found_exactly_where_the_service_says_watermarked() -> None:
    key = simulated_key()
    texts = [TOKENIZER.decode(list(range(start, start + 40))) for start in range(0, 400, 4)]
    texts += ["", "w1\u200b w2", texts[0].replace(" ", "  ")]
    rates = (0.1, 1e-2, 2e-4)
    log10_p = np.array(detection(TOKENIZER, rates)(key, texts))
    backend = DetectionBackend(FixedKeys([key]), TokenizerSet([TOKENIZER]), 100_000)
    caller = Principal("t", "acme", frozenset({Scope.DETECT}), rates=tuple(rates))
    for rate in rates:
        options = DetectionOptions(keys=("assistant",), fpr=rate)
        documents = [Document(text=text) for text in texts]
        verdicts = [
            one.verdict
            for one in ask_here(Question(options.request(documents), caller, "r"), means_of(backend)).results
        ]
        found = sum(verdict == "watermarked" for verdict in verdicts)
        assert [one.found for one in figures_of("s", "n", log10_p, [rate])] == [found]


def test_fisher_s_test_is_that_of_the_hypergeometric_distribution() -> None:
    first, second = Figure("s", "n", 0.01, 12, 9), Figure("s", "n", 0.01, 10, 2)
    total, found = 22, 11
    ways = {k: math.comb(12, k) * math.comb(10, found - k) for k in range(1, 12)}
    expected = sum(way for way in ways.values() if way <= ways[9]) / math.comb(total, found)
    (difference,) = compare([first], [second]).differences
    assert difference.p == pytest.approx(expected, rel=1e-9)
    with pytest.raises(ValueError, match="share no figure"):
        compare([first], [Figure("s", "other", 0.01, 10, 2)])


def test_the_limit_holds_for_runs_of_one_deployment() -> None:
    """Of 150 pairs of runs with 20 figures each 5 % at most have one outside; the test is conservative."""
    generator = np.random.default_rng(5)
    rates = generator.uniform(0, 1, 20)
    outside = 0
    for _ in range(150):
        pair = [
            [Figure("s", str(i), 0.01, 15, int(generator.binomial(15, rate))) for i, rate in enumerate(rates)]
            for _ in range(2)
        ]
        outside += bool(compare(*pair).outside)
    assert outside <= 0.05 * 150


@pytest.mark.parametrize(
    ("found", "texts", "words"),
    [
        (0, 1000, "promise is kept here"),
        (10, 1000, "agrees with the promise"),
        (30, 1000, "more than promised"),
    ],
)
def test_a_summary_says_no_more_than_the_count_shows(found: int, texts: int, words: str) -> None:
    assert words in promise_kept(Figure("s", "n", 1e-2, texts, found))


def test_prompts_come_in_turn_and_are_all_different() -> None:
    strata = {(one.language, one.kind) for one in prompts()}
    assert len({one.prompt for one in prompts()}) == len(prompts())
    assert {(prompt_of(i).language, prompt_of(i).kind) for i in range(len(strata))} == strata
    assert {language for language, _ in strata} <= set(NAMES)
    for plan in PLANS.values():
        assert all(count % len(strata) == 0 for count in (*plan.answers.values(), plan.unmarked))


def test_a_language_is_recognised_where_it_is_plain() -> None:
    for prompt in prompts():
        if prompt.kind == "prose" and prompt.language != "en":
            assert language_of(prompt.prompt) in (prompt.language, None), prompt.prompt
    assert language_of("The leaves of the tree are red in autumn.") == "en"
    assert language_of("Die Blätter sind im Herbst rot, das ist schön.") == "de"
    assert language_of("天空是蓝色的。") == "zh"
    assert language_of("空は青いです。") == language_of("東京都大田区の小さな工場") == "ja"
    assert language_of("1, 2, 3") is None


@pytest.mark.parametrize("name", CONFORMANCE_EDITS)
def test_an_edit_takes_any_answer(name: str) -> None:
    material = Material.of(["some other words that people wrote about the weather and the sea " * 100])
    generator = np.random.default_rng(0)
    edit, share = CONFORMANCE_EDITS[name]
    for text in ("", "word", "天空是蓝色的。", 'One. Two? Three! "Four" - five\'s *six*.\n\n- seven'):
        assert isinstance(edit(text, share, material, generator), str)
    long = "The sky is blue. " * 40 + '"Why?" she asked.\n\n- *Dust*'
    assert (edit(long, share, material, generator) == long) == (name == "none")


def test_texts_without_a_mark_follow_from_the_seed_and_are_named_by_their_hash() -> None:
    first, again, other = shipped_sets(3, 1), shipped_sets(3, 1), shipped_sets(3, 2)
    assert [one.sha256 for one in first] == [one.sha256 for one in again]
    assert all(a.sha256 != b.sha256 for a, b in zip(first, other, strict=True))
    with pytest.raises(ValueError, match="no document has 150 words"):
        passages_of(["short"], 1, np.random.default_rng(0))


def test_another_process_draws_the_same_texts() -> None:
    code = "from ttmark.evaluation.unmarked_texts import shipped_sets\n"
    code += "print(*(one.sha256 for one in shipped_sets(300, 1)))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.split() == [one.sha256 for one in shipped_sets(300, 1)]


def test_the_operator_s_texts_count_once_each_and_are_cut() -> None:
    texts = ["one", "two", "one", "word " * 2_000]
    own = own_set(texts, 10, 0)
    assert sorted(map(len, own.texts)) == [3, 3, len("word " * 1_000) - 1]
    assert len(own_set(texts, 2, 0).texts) == 2
    assert len(own_set(["", " \n", "one"], 10, 0).texts) == 1
    with pytest.raises(ValueError, match="all empty"):
        own_set(["", "\n"], 10, 0)
