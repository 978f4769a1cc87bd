"""The question of `/v1/detect` as the evaluation asks it, and the attackers that ask it."""

from collections.abc import Iterator
from functools import cache
from itertools import islice

import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers

from ttmark.evaluation.adversaries import forging, removing
from ttmark.evaluation.adversaries.forging import FORGERIES, Counterfeiter
from ttmark.evaluation.adversaries.question import Question, word_heat
from ttmark.evaluation.adversaries.removing import REMOVALS, Scrubber, Words
from ttmark.evaluation.cells import SETTINGS, Cell, Setting, prf_key
from ttmark.evaluation.edits import Material, words_of
from ttmark.evaluation.language_model import write_text
from ttmark.evaluation.simulated import SimulatedModel, SimulatedSource
from ttmark.services.conformance import detection
from ttmark.services.text_readings import text_readings
from ttmark.shared.keys.records import KeyState
from ttmark.shared.keys.unlocked import UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.detection import DEFAULT_FPR
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.detectors.aligned import BETA
from ttmark.shared.watermark.detectors.alignment import alignment_path
from ttmark.shared.watermark.detectors.positions import position_scores

KEYS = tuple(prf_key(0, "question", number) for number in range(3))
SOURCE = SimulatedSource()
MATERIAL = Material.of(SOURCE.human_texts())


def question(block_size: int = 2, keys: tuple[bytes, ...] = KEYS[:1]) -> Question:
    return Question(Watermark("gumbel", block_size, 2), keys, SOURCE.tokenizer, text_readings())


@cache
def marked(key: bytes, tokens: int, block_size: int = 2) -> str:
    cell = Cell("gumbel", block_size, SETTINGS[Setting.DEFAULT], tokens, context_width=2)
    text = write_text(SimulatedModel(), cell, key, (7,), np.random.default_rng(1))
    return SOURCE.tokenizer.decode(text.tokens)


def unmarked(seed: int, words: int = 80) -> str:
    return "".join(MATERIAL.run(words, np.random.default_rng(seed))).strip()


@pytest.mark.parametrize("block_size", [1, 2])
@pytest.mark.parametrize("pool", [1, 3])
def test_the_question_is_the_detection_services(block_size: int, pool: int) -> None:
    """The slow way is the service's whole path from a request to its answer."""
    asked = question(block_size, KEYS[:pool])
    fingerprint = SOURCE.tokenizer.fingerprint
    profile = Profile(
        scheme="gumbel", block_size=block_size, context_width=2, parameters={}, pool=pool,
        tokenizer_fingerprint=fingerprint,
    )  # fmt: skip
    version = UnlockedVersion(1, KeyState.PRIMARY, *asked.keys)
    key = UnlockedKey("a-key", "a-tenant", profile, 1, (version,))
    text = marked(KEYS[pool - 1], 200, block_size)
    texts = [text, text.replace(" ", "\u00a0", 5), f"{unmarked(1)} {text}", unmarked(2), "w1 w2"]
    found = [asked.log10_p(one) for one in texts]
    told = detection(SOURCE.tokenizer, (DEFAULT_FPR,))(key, texts)
    assert found[:3] == pytest.approx(told[:3])
    # Where nothing speaks for a mark, the service says 1 / E, which is at most as sharp but for the draws.
    assert all(ours < theirs + 0.1 for ours, theirs in zip(found[3:], told[3:], strict=True))
    assert found[0] < -2
    assert found[1] > found[0]  # two readings


def test_heat_of_a_word_is_the_score_of_the_block_that_its_tokens_stand_in() -> None:
    asked, text = question(), marked(KEYS[0], 40)
    tokens = np.array(SOURCE.tokenizer.encode(text))
    scores = position_scores(asked.watermark, KEYS[0], tokens)
    expected = [0.0] * tokens.size
    for block in alignment_path(scores, 2, BETA).tolist():
        expected[block + 2] = expected[block + 3] = scores[block]
    assert word_heat(asked, words_of(text)).tolist() == expected
    assert np.mean(expected) > 0.3  # a marked text


def test_heat_of_a_word_of_several_tokens_is_their_sum() -> None:
    pieces = {token: number for number, token in enumerate(["a", "b", "c", "##x", "[UNK]"])}
    backend = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    asked = Question(Watermark("gumbel", 1, 1), KEYS[:1], TextTokenizer(backend), text_readings())
    words = ["a", " bx", " c", " axx"]
    heat = asked.heat("".join(words))
    assert heat.size == 7
    by_hand = [heat[0], heat[1:3].sum(), heat[3], heat[4:].sum()]
    assert word_heat(asked, words) == pytest.approx(by_hand)


class Counted(Question):
    """A detector that counts its questions, by verdict and p-value or by looks at the heat."""

    __slots__ = ("questions",)

    def __init__(self) -> None:
        plain = question()
        super().__init__(plain.watermark, plain.keys, plain.tokenizer, plain.readings)
        object.__setattr__(self, "questions", {"p-value": 0, "heat": 0})

    def log10_p(self, text: str) -> float:
        self.questions["p-value"] += 1  # type: ignore[attr-defined]
        return super().log10_p(text)

    def heat(self, text: str) -> NDArray[np.float64]:
        self.questions["heat"] += 1  # type: ignore[attr-defined]
        return super().heat(text)


@pytest.mark.parametrize("tells", REMOVALS)
def test_a_remover_publishes_once_for_each_question_and_ends_with_a_text_that_is_not_found(
    tells: str,
) -> None:
    words = words_of(marked(KEYS[0], 80))
    assert question().log10_p("".join(words)) < removing.LOG10_FPR
    last: Words = []
    for published in islice(REMOVALS[tells](_scrubber(question(), words)), 200):
        last = published
        assert sum(one != other for one, other in zip(last, words, strict=True)) <= round(0.2 * len(words))
    if tells != "nothing":
        assert question().log10_p("".join(last)) > removing.LOG10_FPR


def _scrubber(asked: Question, words: Words) -> Scrubber:
    return Scrubber(asked, words, MATERIAL, np.random.default_rng(2))


def _questions(attack: Iterator[Words], counted: Counted, steps: int) -> list[int]:
    """Those that had been asked when each text was published; heat comes with the p-value of one question."""
    return [max(counted.questions.values()) for _ in islice(attack, steps)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("tells", ["verdict", "p-value", "p-value and heat"])
def test_what_is_published_after_n_questions_took_n_questions(tells: str) -> None:
    counted = Counted()
    words = words_of(marked(KEYS[0], 80))
    counts = _questions(REMOVALS[tells](_scrubber(counted, words)), counted, 8)
    assert counts == list(range(len(counts)))
    counted = Counted()
    attacker = Counterfeiter(counted, words_of(unmarked(4)), MATERIAL, np.random.default_rng(3))
    assert _questions(FORGERIES[tells](attacker), counted, 8) == list(range(8))


def test_a_forger_needs_scores_more_than_a_p_value_and_a_p_value_more_than_a_verdict() -> None:
    reached = []
    for attack in FORGERIES.values():
        words = words_of(unmarked(5))
        attacker = Counterfeiter(question(), words, MATERIAL, np.random.default_rng(4))
        *_, published = islice(attack(attacker), 61)
        reached.append(question().log10_p("".join(published)))
    nothing, verdict, p_value, heat = reached
    assert heat < p_value < min(nothing, verdict) + 0.5
    assert heat < forging.RATES[-1]


def test_removal_by_heat_takes_fewer_changes_than_by_verdicts_of_random_ones() -> None:
    words = words_of(marked(KEYS[0], 80))
    changed = {}
    for tells in ("p-value and heat", "nothing"):
        last = list(REMOVALS[tells](_scrubber(question(), words)))[-1]
        changed[tells] = sum(one != other for one, other in zip(last, words, strict=True))
    assert changed["p-value and heat"] < changed["nothing"]
