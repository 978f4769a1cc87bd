"""What a conformance run measures: how many texts, which prompts, sampling, lengths and rates."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

import orjson

from ttmark.evaluation.experiment_cells import SETTINGS, Cell, SamplingSetting, Setting
from ttmark.shared.schemas.profile import Profile

PROMPTS_PATH = Path(__file__).with_name("prompts.jsonl")

CHAT, PLAIN = "chat", "plain"
SAMPLINGS: Mapping[str, SamplingSetting] = {
    CHAT: SETTINGS[Setting.CHAT],
    PLAIN: SamplingSetting(top_k=0, top_p=1.0, temperature=1.0),
}
"""That of chat services, and OpenAI's default."""

FALSE_RATES = (1e-2, 1e-3)
FOUND_RATES = (1e-2, 1e-5)
"""The second is the service's default."""


class Size(StrEnum):
    QUICK = "quick"
    SMALL = "small"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class TextCounts:
    """Numbers of texts.

    Attributes:
        answers: marked answers by sampling; the strata of the prompts come in turn.
        unmarked: answers of the model without a mark, at `CHAT`.
        tokens: an answer is cut there.
        lengths: in tokens; texts of each are beginnings of answers.
        passages: texts of each shipped set without a mark.
        own: most texts of the operator's set; of more, this many are drawn.
        fresh_keys: keys that each text without a mark is tried with, besides the deployed one.
    """

    answers: Mapping[str, int]
    unmarked: int
    tokens: int
    lengths: tuple[int, ...]
    passages: int
    own: int
    fresh_keys: int


PLANS: Mapping[Size, TextCounts] = {
    Size.QUICK: TextCounts({CHAT: 45, PLAIN: 9}, 9, 200, (50, 100, 200), 30, 50, 4),
    Size.SMALL: TextCounts({CHAT: 180, PLAIN: 54}, 54, 200, (50, 100, 200), 100, 200, 4),
    Size.FULL: TextCounts({CHAT: 900, PLAIN: 450}, 450, 400, (50, 100, 200, 400), 500, 5_000, 10),
}


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A user's message.

    Attributes:
        language: of prompt and, as far as the model speaks it, answer (ISO 639).
        kind: of text that it asks for.
    """

    language: str
    kind: str
    prompt: str


@cache
def prompts() -> tuple[UserMessage, ...]:
    """Those that ship; neighbours differ in language or kind, so that a beginning holds all strata alike."""
    return tuple(UserMessage(**orjson.loads(line)) for line in PROMPTS_PATH.read_bytes().splitlines())


def prompt_of(index: int) -> UserMessage:
    return prompts()[index % len(prompts())]


def marked_cell(plan: TextCounts, sampling: str, profile: Profile) -> Cell:
    """Where a run keeps the marked answers at a sampling; their key is the deployed one, not the cell's."""
    width = profile.context_width
    return Cell(profile.scheme, profile.block_size, SAMPLINGS[sampling], plan.tokens, width)


def unmarked_cell(plan: TextCounts) -> Cell:
    return Cell(None, 1, SAMPLINGS[CHAT], plan.tokens)
