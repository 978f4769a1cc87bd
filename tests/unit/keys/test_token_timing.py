"""What a refusal takes does not tell how much of a token was right: neither its steps nor its time.

The same procedures are put to a registry that compares secrets digit by digit, which they must find out.
"""

import gc
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from ttmark.shared.access import tokens
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.key_store_errors import InvalidToken
from ttmark.shared.vault.store import RecordStore

pytestmark = pytest.mark.long

TOKENS = 9
ROUNDS = 10_000
HEX = "0123456789abcdef"


def digit_by_digit(given: str, expected: str) -> bool:
    """A comparison that stops at the first difference, and so tells where it was."""
    return all(a == b for a, b in zip(given, expected, strict=True))


def other_digit(order: random.Random, digit: str) -> str:
    return order.choice(HEX.replace(digit, ""))


def leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on registries compare the secrets themselves, digit by digit."""
    monkeypatch.setattr(tokens, "hash_secret", lambda secret: secret)
    monkeypatch.setattr(tokens.hmac, "compare_digest", digit_by_digit)


async def steps(registry: TokenRegistry, token: str) -> Counter[str]:
    """What the interpreter does to refuse a token: calls of each function, and instructions in all."""
    seen: Counter[str] = Counter()

    def instruction(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes = True
        seen["instructions"] += event == "opcode"
        return instruction

    def call(frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call":
            seen[function.__qualname__] += 1
        elif event == "call":
            seen[frame.f_code.co_qualname] += 1

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(instruction)
    sys.setprofile(call)
    try:
        await registry.authenticate(token)
    except InvalidToken:
        return seen
    finally:
        sys.setprofile(before[1])
        sys.settrace(before[0])
    raise AssertionError("the token was not refused")


async def steps_by_right_digits(registry: TokenRegistry) -> list[Counter[str]]:
    """Of a token whose first 0, 1, 32 or 63 secret digits are right; last, of one that there is not."""
    plain, _ = await registry.create(tenant="acme", scopes=[Scope.DETECT])
    await registry.authenticate(plain)
    head, secret = plain[:-64], plain[-64:]
    order = random.Random(1)
    guesses = [
        head + secret[:right] + "".join(other_digit(order, digit) for digit in secret[right:])
        for right in (0, 1, 32, 63)
    ]
    guesses.append(f"ttm_{'0' * 16}_{secret}")
    await steps(registry, guesses[0])  # the first of all fills caches
    return [await steps(registry, guess) for guess in guesses]


async def test_a_refusal_takes_the_same_steps_however_much_was_right(store, kek, monkeypatch):
    first, *others, unknown = await steps_by_right_digits(TokenRegistry(store, kek, fresh_seconds=3600))
    assert others == [first] * 3
    assert [each[name] for each in (first, unknown) for name in ("compare_digest", "hash_secret")] == [1] * 4
    leaks(monkeypatch)
    *leaky, _ = await steps_by_right_digits(TokenRegistry(store, kek, fresh_seconds=3600))
    assert len({each["instructions"] for each in leaky}) == 4, "the procedure would not find a leak"


async def shift(registry: TokenRegistry, rounds: int, order: random.Random) -> float:
    """How much longer, as a share, the refusal of a token takes whose first 63 secret digits are right."""
    plain, _ = await registry.create(tenant="acme", scopes=[Scope.DETECT])
    await registry.authenticate(plain)
    head, secret = plain[:-64], plain[-64:]
    # Wrong from the first digit on, and as often the same: processors are quicker at what they saw before.
    wrong = other_digit(order, secret[0]) + "".join(order.choices(HEX, k=62))
    starts = {True: head + secret[:63], False: head + wrong}
    # In a new order each round, so that whatever else the machine does strikes both alike.
    guesses = [
        (right, starts[right] + other_digit(order, secret[63]))
        for _ in range(rounds)
        for right in order.sample([True, False], 2)
    ]
    times: dict[bool, list[int]] = {True: [], False: []}
    for right, token in guesses:
        begin = time.perf_counter_ns()
        try:
            await registry.authenticate(token)
        except InvalidToken:
            times[right].append(time.perf_counter_ns() - begin)
    return float(np.median(times[True]) / np.median(times[False])) - 1


async def typical_shift(registry: TokenRegistry, rounds: int) -> float:
    """The median over tokens: a leak shows in each, what the machine does at times not."""
    order = random.Random(1)
    gc.disable()
    try:
        return float(np.median([await shift(registry, rounds, order) for _ in range(TOKENS)]))
    finally:
        gc.enable()


@pytest.mark.slow
async def test_the_time_of_a_refusal_does_not_depend_on_the_right_prefix(
    store: RecordStore,
    kek: KeyEncryptionKey,
    monkeypatch: pytest.MonkeyPatch,
    record_result: Callable[[str, str, str], None],
) -> None:
    # A leak is there each time, what else the machine does is not: the least of three counts.
    registry = TokenRegistry(store, kek, fresh_seconds=3600)
    ours = min([await typical_shift(registry, ROUNDS) for _ in range(3)], key=abs)
    leaks(monkeypatch)
    leaky = await typical_shift(TokenRegistry(store, kek, fresh_seconds=3600), ROUNDS)
    record_result(
        "timing of token comparison",
        "does not depend on the prefix",
        f"{ROUNDS:,} refusals each with 63 right and with 63 wrong digits, of {TOKENS} tokens: medians "
        f"differ by {ours:+.2%}; by {leaky:+.2%} with a comparison that stops at the first wrong digit",
    )
    assert leaky > 0.05, "the procedure would not find a leak"
    assert abs(ours) < 0.01
