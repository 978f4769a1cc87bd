"""A refusal takes the same steps however much of a token was right; what compares digits is found out."""

import random
import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest

from ttmark.shared.access import tokens
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.vault.stores.key_store_errors import InvalidToken

pytestmark = pytest.mark.long

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
