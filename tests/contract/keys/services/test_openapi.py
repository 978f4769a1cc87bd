"""Requests generated from the detection service's OpenAPI description: nothing undocumented comes back."""

import itertools
from typing import Any

import pytest

from tests.harness.forms import PATHS
from ttmark.shared.access.scopes import TokenLimits

pytestmark = pytest.mark.long

# What a file or a tokenizer makes of a string, and how many tokens a vocabulary has, no schema can say.
REFUSABLE = (
    *(f"POST {path}" for path in PATHS),
    "POST /v1/detect/public",
    *(f"POST /v1/detect{mode}" for mode in ("", "/direct", "/aligned", "/localized", "/jobs")),
)
UNLIMITED = {"TTMARK_ANSWERS_PER_PASSAGE": "0", "TTMARK_PUBLIC_WORDS_PER_DAY": "0"}
NO_LIMITS = TokenLimits(requests_per_minute=0, documents_per_minute=0)


@pytest.mark.parametrize(("examples", "cases"), [(10, 1), pytest.param(300, 50_000, marks=pytest.mark.slow)])
def test_whatever_the_description_allows_or_forbids_is_answered_as_documented(
    cluster: Any, generate_cases: Any, examples: int, cases: int
) -> None:
    service = cluster.start("detect-4", UNLIMITED)
    token = cluster.operator.token(limits=NO_LIMITS)
    # Short runs under many seeds: what a case costs to generate grows with the length of its run.
    done, seeds = 0, itertools.count(1)
    while done < cases:
        done += generate_cases(service.url, token, examples=examples, seed=next(seeds), refusable=REFUSABLE)
    cluster.stop("detect-4")
