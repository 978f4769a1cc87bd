"""What happens to keys between two questions changes no verdict that it should not change."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.features.spent.detect.oracle import RULE, Oracle, oracle
from tests.unit.detect_service.conftest import HUMAN
from ttmark.services.settings.store import open_store
from ttmark.shared.keys.held_keys import UnlockedKey
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.limits.counters import LocalCounters
from ttmark.shared.vault.kek import KeyEncryptionKey

pytestmark = pytest.mark.usefixtures("answers_at_once")
FOUND, MISSED, REFUSED = "watermarked", "not_detected", "no_verdict"
Step = Callable[[KeyRing], Awaitable[object]]


async def nothing(_: KeyRing) -> None:
    pass


async def create(ring: KeyRing, **how: Any) -> None:
    profile = (await ring.open("a-one")).profile
    await ring.create("a-new", tenant="a", profile=profile.model_copy(update=how))


async def imported(ring: KeyRing) -> None:
    profile = (await ring.open("a-one")).profile
    await ring.create("a-new", tenant="a", profile=profile, secret=bytes(range(32)))


async def promote(ring: KeyRing, key_id: str) -> None:
    await ring.promote(key_id, 2, force=True)


async def rotated(ring: KeyRing, key_id: str) -> None:
    await ring.rotate(key_id)
    await promote(ring, key_id)


@dataclass(frozen=True)
class Event:
    """What happens between two questions, and the verdicts on a marked and an unmarked text after it.

    `before`: to the keys before the first; `held`: the tenant's keys from then on, None: those of the store.
    """

    happens: Step
    marked: str
    unmarked: str
    before: Step = nothing
    held: Callable[[dict[str, UnlockedKey]], list[UnlockedKey]] | None = None
    counters: str = "kept"
    key: bytes = bytes(32)
    asks: tuple[tuple[str, Any], ...] = ()


one, two = "a-one", "a-two"
EVENTS = {
    "nothing": Event(nothing, FOUND, MISSED),
    "another key is created": Event(create, FOUND, REFUSED),
    "a key with a wider pool is created": Event(lambda ring: create(ring, pool=16), FOUND, REFUSED),
    "a key is imported": Event(imported, FOUND, REFUSED),
    "another key is rotated": Event(lambda ring: ring.rotate(two), FOUND, REFUSED),
    "this key is rotated": Event(lambda ring: ring.rotate(one), FOUND, REFUSED),
    "a pending version becomes primary": Event(
        lambda ring: promote(ring, one), FOUND, MISSED, before=lambda ring: ring.rotate(one)
    ),
    "a pending version is retired": Event(
        lambda ring: ring.retire(one, 2), FOUND, REFUSED, before=lambda ring: ring.rotate(one)
    ),
    "this version is retired": Event(
        lambda ring: ring.retire(one, 1), REFUSED, REFUSED, before=lambda ring: rotated(ring, one)
    ),
    "another key's version is retired": Event(
        lambda ring: ring.retire(two, 1), FOUND, REFUSED, before=lambda ring: rotated(ring, two)
    ),
    "this version is disabled": Event(lambda ring: ring.disable(one, 1), REFUSED, REFUSED),
    "another key is disabled": Event(lambda ring: ring.disable(two, 1), FOUND, REFUSED),
    "this version is disabled and enabled": Event(
        lambda ring: ring.disable(one, 1), FOUND, MISSED, held=lambda keys: [keys[one], keys[two]]
    ),
    "this key is deleted": Event(nothing, REFUSED, REFUSED, held=lambda keys: [keys[two]]),
    "another key is deleted": Event(nothing, FOUND, REFUSED, held=lambda keys: [keys[one]]),
    "this key's name is given to others": Event(
        nothing, REFUSED, REFUSED, held=lambda keys: [replace(keys["b-one"], key_id=one), keys[two]]
    ),
    "a rule of rotation is set": Event(lambda ring: ring.rotate_after(one, 1), FOUND, MISSED),
    "a key is exported": Event(lambda ring: ring.export(one), FOUND, MISSED),
    "records are wrapped anew": Event(lambda ring: ring.rewrap(), FOUND, MISSED),
    "the service restarts": Event(nothing, FOUND, MISSED, counters="opened anew"),
    "counts are lost": Event(nothing, FOUND, MISSED, counters="new"),
    "a new key-encryption key": Event(nothing, FOUND, MISSED, counters="opened anew", key=b"new " * 8),
    "this key is named": Event(nothing, FOUND, REFUSED, asks=(("keys", [one]),)),
    "another key is named": Event(nothing, REFUSED, REFUSED, asks=(("keys", [two]),)),
    "both are named": Event(nothing, FOUND, MISSED, asks=(("keys", [two, one]),)),
    "another option": Event(nothing, REFUSED, REFUSED, asks=(("normalize", False),)),
}


@dataclass(frozen=True)
class Held:
    """Keys that a service works with."""

    keys: list[UnlockedKey]

    def for_tenant(self, _: str) -> list[UnlockedKey]:
        return self.keys


async def told(asker: Oracle, texts: list[str], **options: Any) -> list[dict[str, Any]]:
    mode = options.pop("mode", "combined")
    response = await asker.post({"inputs": [{"text": text} for text in texts], **options}, mode)
    assert response.status_code == 200, response.text
    results: list[dict[str, Any]] = response.json()["results"]
    return results


async def used_up(asker: Oracle, texts: list[str]) -> None:
    """Asks so often that the texts' own evidence is spent; each question has another word before them."""
    for number in range(RULE.limit):
        await told(asker, [f"{number} {text}" for text in texts])


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS.keys())
async def test_a_verdict_stays_through_a_key_s_life(service: Any, tmp_path: Path, event: Event) -> None:
    ring = KeyRing(open_store(f"sqlite:///{tmp_path / 'keys.db'}"), KeyEncryptionKey(bytes(32)))
    texts, counters = [service.marked(one, 150, seed=1, choices=3), HUMAN * 3], LocalCounters()
    await event.before(ring)
    await service.backend.keys.refresh()
    async with oracle(service, counters=counters) as asker:
        await used_up(asker, texts)
        before = await told(asker, texts)
        assert [result["verdict"] for result in before] == [FOUND, MISSED]
        assert all("asked_before" in result for result in before)
    await event.happens(ring)
    await service.backend.keys.refresh()
    if event.held is not None:
        service = replace(service, backend=replace(service.backend, keys=Held(event.held(service.keys))))
    counters = LocalCounters() if event.counters == "new" else counters
    async with oracle(service, counters=counters, key=event.key) as asker:
        after = await told(asker, [f"and {text}" for text in texts], **dict(event.asks))
    assert [result["verdict"] for result in after] == [event.marked, event.unmarked]
    remembered = event.counters != "new" and event.key == bytes(32)
    assert [("asked_before" in result) for result in after] == [
        remembered and verdict != REFUSED for verdict in (event.marked, event.unmarked)
    ]


def changed(text: str, count: int) -> str:
    """So many letters are others, each far from the next: a letter is in the context or block of six rows."""
    step, letters = len(text) // (count + 1), list(text)
    for place in range(step, len(text) - step + 1, step):
        letters[place] = "q" if letters[place] != "q" else "z"
    return "".join(letters)


async def verdict_of_copy(service: Any, text: str, copy: str, *, mode: str = "combined") -> str:
    async with oracle(service) as asker:
        for number in range(RULE.limit):
            await told(asker, [f"{number} {text}"], mode=mode)
        (result,) = await told(asker, [copy], mode=mode)
    return str(result["verdict"])


WEAK, STRONG = {"tokens": 300, "seed": 2, "choices": 3}, {"tokens": 400}
COPIES: dict[str, tuple[dict[str, int], Callable[[str], str], set[str]]] = {
    "the same, with a word before it": (WEAK, lambda text: f"again {text}", {FOUND}),
    "one word changed": (WEAK, lambda text: changed(text, 1), {FOUND}),
    "four words changed": (WEAK, lambda text: changed(text, 4), {FOUND}),
    "ten words changed": (WEAK, lambda text: changed(text, 10), {REFUSED}),
    "its end cut off": (WEAK, lambda text: text[:278], {FOUND}),
    "a tenth cut off": (WEAK, lambda text: text[:270], {REFUSED}),
    "a tenth of a strong text cut off": (STRONG, lambda text: text[:366], {FOUND}),
    "more than a tenth of a strong text cut off": (STRONG, lambda text: text[:350], {REFUSED}),
    "pieces in another order": (WEAK, lambda text: text[150:] + text[:150], {FOUND}),
}


@pytest.mark.parametrize(("made", "copy", "told"), COPIES.values(), ids=COPIES.keys())
async def test_nine_tenths_of_what_was_found_stay_found(service, made, copy, told) -> None:
    text = service.marked(one, **made)
    assert await verdict_of_copy(service, text, copy(text)) in told
