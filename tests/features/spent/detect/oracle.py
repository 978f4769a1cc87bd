"""Attacks by somebody who has a token without evidence, a table of synonyms and time."""

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from prometheus_client import CollectorRegistry

from tests.harness.detection_routes import route_of
from tests.unit.detect_service.served import served, workers_here
from ttmark.detect_service.features.spent.spent_evidence import AnswerLedger
from ttmark.shared.access.scopes import TokenLimits
from ttmark.shared.events import drop_event
from ttmark.shared.limits.counters import Counters, LocalCounters
from ttmark.shared.limits.counting_filter import AnswerRule
from ttmark.shared.limits.rate_limits import DocumentAllowance, LimitMetrics
from ttmark.shared.signed_files.signed_file import CaseKey

RULE = AnswerRule(limit=12, window_seconds=86_400.0, findings=0.1)  # the settings' defaults
FINEST, COARSEST = 1e-5, 1e-2
KEY = "a-one"
GROUPS = (
    "big large great huge vast, small little tiny slight minor, quick fast rapid swift brisk, "
    "begin start open launch enter, end finish close cease stop, show display present reveal expose, "
    "make build create form craft, help aid assist support serve, use apply employ utilize exploit, "
    "find locate discover detect spot, say state declare claim assert, "
    "think believe consider suppose reckon, good fine decent sound solid, bad poor awful lousy grim, "
    "often frequently regularly commonly usually, road street path lane route, "
    "house home dwelling residence lodge, child kid youngster infant minor, "
    "answer reply response retort reaction, change alter modify vary adjust, "
    "choose pick select elect prefer, keep hold retain preserve maintain, "
    "clear plain obvious evident lucid, hard difficult tough tricky demanding"
)
SYNONYMS = {word: group.split() for group in GROUPS.split(", ") for word in group.split()}
WORDS = sorted(SYNONYMS)
FIXED = "the of in Miller and Berlin to 1987 which not Anna three river on"


@dataclass
class Oracle:
    """The route as an attacker sees it; `answered`: with a verdict, other than one said before."""

    service: Any
    client: httpx.AsyncClient
    asked: int = 0
    answered: int = 0
    mode: str = "direct"
    headers: dict[str, str] = field(default_factory=dict)

    async def post(self, body: dict[str, object], mode: str | None = None) -> httpx.Response:
        self.asked += 1
        path = route_of(mode or self.mode)
        response = await self.client.post(path, json=body, headers=self.headers)
        (result, *_) = response.json()["results"] if response.status_code == 200 else [{}]
        self.answered += result.get("verdict", "no_verdict") != "no_verdict" and (
            result["verdict"] != "watermarked" or "asked_before" not in result
        )
        return response

    async def found(self, words: Sequence[str], rate: float) -> bool | None:
        """Whether the text is found at `rate`; None where the question is refused."""
        response = await self.post({"inputs": [{"text": " ".join(words)}], "keys": [KEY], "fpr": rate})
        assert response.status_code == 200, response.text
        verdict = response.json()["results"][0]["verdict"]
        return None if verdict == "no_verdict" else bool(verdict == "watermarked")


@asynccontextmanager
async def oracle(
    service: Any,
    *,
    rule: AnswerRule | None = RULE,
    counters: Counters | None = None,
    case_key: CaseKey | None = None,
    key: bytes = bytes(32),
) -> AsyncIterator[Oracle]:
    """The service with its limits (None: without), asked by its token without evidence."""
    counters = counters or LocalCounters()
    registry = CollectorRegistry()
    ledger = rule and AnswerLedger(counters, key=key, rule=rule, now=lambda: 86_400.0 * 1_000)
    allowance = DocumentAllowance("detect", counters, TokenLimits(), LimitMetrics(registry), drop_event)
    parts = {"allowance": allowance, "ledger": ledger, "case_key": case_key, "workers": workers_here()}
    async with served(
        service.backend, service.authenticate, options={"registry": registry}, **parts
    ) as client:
        yield Oracle(service, client, headers=service.headers("verdict"))


async def log10_p(service: Any, words: Sequence[str], mode: str = "direct") -> float:
    """What the attacker does not see."""
    (result,) = await service.results(mode, {"inputs": [{"text": " ".join(words)}], "keys": [KEY]})
    return float(result.log10_p)


def draft(seed: int, words: int = 80) -> list[str]:
    """A text in which every other word has synonyms; the others are names and words that have to stay."""
    chance = random.Random(seed)
    return [chance.choice(WORDS if place % 2 else FIXED.split()) for place in range(words)]


def replaceable(words: Sequence[str]) -> list[int]:
    """The places whose words have synonyms."""
    return [place for place, word in enumerate(words) if word in SYNONYMS]


async def marked(service: Any, seed: int, words: int = 80) -> list[str]:
    """A text of the key's: of each word's synonyms the one of the largest ratio beside its neighbours."""
    if (seed, words) in _MARKED:
        return list(_MARKED[seed, words])
    text = draft(seed, words)
    for place in replaceable(text):
        before, after = text[max(0, place - 4) : place], text[place + 1 : place + 5]
        inputs = [{"text": " ".join([*before, one, *after])} for one in SYNONYMS[text[place]]]
        results = await service.results("combined", {"inputs": inputs, "keys": [KEY]})
        ratios = zip(results, SYNONYMS[text[place]], strict=True)
        text[place] = max(ratios, key=lambda pair: float(pair[0].log10_e))[1]
    _MARKED[seed, words] = list(text)
    return text


_MARKED: dict[tuple[int, int], list[str]] = {}


def substituted(words: list[str], places: Sequence[int], chance: random.Random) -> list[str]:
    """Another synonym at each of the places."""
    changed = list(words)
    for place in places:
        changed[place] = chance.choice([word for word in SYNONYMS[words[place]] if word != words[place]])
    return changed


async def forge(attacker: Oracle, budget: int, seed: int) -> list[str]:
    """Greedy substitution: what the oracle finds at the coarser rate is held to the finer one from then on.

    First every question draws all words anew; then single words are changed, and what keeps the finding is
    kept.
    """
    chance = random.Random(seed)
    words, rates = draft(seed), [COARSEST, 1e-3, FINEST]
    while attacker.asked < budget:
        places = replaceable(words)
        if len(rates) < 3:
            places = chance.sample(places, 4)
        candidate = substituted(words, places, chance)
        answer = await attacker.found(candidate, rates[0])
        if answer:
            words = candidate
            if len(rates) > 1:
                rates.pop(0)
    return words


async def scrub(attacker: Oracle, words: list[str], budget: int, seed: int) -> tuple[list[str], int]:
    """Changes words until the finest rate finds nothing, takes back what was not needed; how many differ."""
    chance = random.Random(seed)
    order = replaceable(words)
    chance.shuffle(order)
    cleared = substituted(words, order, chance)
    low, high = 0, len(order)  # by bisection: how many of the changes are needed in this order
    while low + 1 < high and attacker.asked < budget:
        middle = (low + high) // 2
        answer = await attacker.found([*_changed(words, cleared, order[:middle])], FINEST)
        if answer is None:
            break
        low, high = (middle, high) if answer else (low, middle)
    needed = list(order[:high])
    for place in order[:high]:
        if attacker.asked >= budget:
            break
        fewer = [one for one in needed if one != place]
        if await attacker.found(_changed(words, cleared, fewer), FINEST) is False:
            needed = fewer
    return _changed(words, cleared, needed), len(needed)


def _changed(words: list[str], cleared: list[str], places: Sequence[int]) -> list[str]:
    chosen = set(places)
    return [cleared[place] if place in chosen else word for place, word in enumerate(words)]
