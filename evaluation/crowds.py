"""Diversity of the answers to one prompt, by profile, pool and number of requests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ttmark.evaluation.cells import Cell, SamplingSetting
from ttmark.evaluation.diversity import Sizes, distinct_share, group_sizes, unmarked_share
from ttmark.evaluation.intervals import Interval, mean
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.profiles import POOLS, Profile
from ttmark.evaluation.report.result import Table, table_by

OPENING, LATER = 24, 96
"""Tokens that are compared, beside all: the first line or two, and a paragraph."""
REQUESTS = (20, 200)
"""Of one prompt."""


@dataclass(frozen=True, slots=True)
class CrowdRow:
    """Many requests of one prompt, under one profile.

    Attributes:
        tokens: of the completions, from the first on, that are compared.
        counted: completions of a prompt under one key that the figures come from.
        distinct: different completions over requests, mean over prompts, for each of POOLS; a lower bound.
        unmarked: the same without a watermark.
    """

    profile: Profile
    setting: SamplingSetting
    tokens: int
    requests: int
    counted: int
    distinct: tuple[Interval, ...]
    unmarked: Interval


def measure_crowds(
    lab: Lab,
    setting: SamplingSetting,
    lengths: Mapping[Profile, int],
    prompts: int,
    same_key: int,
    unmarked: int,
) -> list[CrowdRow]:
    """One row for each profile, number of tokens and number of requests.

    `lengths` are those of the completions; `same_key` and `unmarked` are how many of each prompt are
    generated under one key and without a watermark.
    """
    rows = []
    for profile, length in lengths.items():
        plain = _sizes(lab, Cell(None, 1, setting, OPENING), prompts, unmarked, OPENING)
        cell = replace(profile.cell(setting, length), pool=1)
        for tokens in sorted({min(tokens, length) for tokens in (OPENING, LATER, length)}):
            same = _sizes(lab, cell, prompts, same_key, tokens)
            rows += [_crowd(profile, setting, tokens, count, same, plain) for count in REQUESTS]
    return rows


def _sizes(lab: Lab, cell: Cell, prompts: int, completions: int, tokens: int) -> list[Sizes]:
    """How many completions of each prompt are alike; text i continues prompt i mod prompts."""
    texts = lab.run.texts(replace(cell, prompts=prompts), prompts * completions)
    grid = np.stack([text.tokens(tokens) for text in texts])
    return [group_sizes(grid[prompt::prompts]) for prompt in range(prompts)]


def _crowd(
    profile: Profile,
    setting: SamplingSetting,
    tokens: int,
    requests: int,
    same: Sequence[Sizes],
    plain: Sequence[Sizes],
) -> CrowdRow:
    pairs = list(zip(same, plain, strict=True))
    return CrowdRow(
        profile,
        setting,
        tokens,
        requests,
        int(same[0].sum()),
        tuple(mean(np.array([distinct_share(*pair, requests, pool) for pair in pairs])) for pool in POOLS),
        mean(np.array([unmarked_share(sizes, requests) for sizes in plain])),
    )


def crowds_table(crowds: Sequence[CrowdRow], prompts: int) -> Table:
    """Diversity of answers to one prompt."""

    def share(number: int) -> Callable[[CrowdRow], str]:
        return lambda row: row.distinct[number].percent()

    counted = " or ".join(map(str, sorted({row.counted for row in crowds})))
    return table_by(
        f"Different answers to one prompt, mean over {prompts} prompts",
        crowds,
        {
            "profile": lambda row: row.profile,
            "T": lambda row: f"{row.setting.temperature:g}",
            "requests of a prompt": lambda row: row.requests,
            "tokens compared": lambda row: row.tokens,
            "without a watermark": lambda row: row.unmarked.percent(),
            **{f"K {pool}": share(i) for i, pool in enumerate(POOLS)},
        },
        (
            "Expected share of different completions when each request draws one of K keys. It follows from"
            f" completions of each prompt under one key ({counted} of each) and without a watermark (the"
            f" first {OPENING} tokens). A lower bound: of more completions under a key than were generated,"
            " every equal pair takes one away, with one more than was seen; so does every equal pair under"
            " different keys.",
        ),
    )
