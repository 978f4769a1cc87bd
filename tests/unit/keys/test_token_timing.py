"""How long a refusal takes does not tell how much of a token was right.

The same procedure is put to a registry that compares secrets digit by digit, which it must find out.
"""

import gc
import random
import time
from collections.abc import Callable

import numpy as np
import pytest

from ttmark.shared.access import tokens
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.key_store_errors import InvalidToken
from ttmark.shared.vault.store import RecordStore

TOKENS = 9
HEX = "0123456789abcdef"


def digit_by_digit(given: str, expected: str) -> bool:
    """A comparison that stops at the first difference, and so tells where it was."""
    return all(a == b for a, b in zip(given, expected, strict=True))


def other_digit(order: random.Random, digit: str) -> str:
    return order.choice(HEX.replace(digit, ""))


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


@pytest.mark.parametrize(
    ("rounds", "limit"), [(300, 0.02), pytest.param(10_000, 0.01, marks=pytest.mark.slow)]
)
async def test_the_time_of_a_refusal_does_not_depend_on_the_right_prefix(
    store: RecordStore,
    kek: KeyEncryptionKey,
    monkeypatch: pytest.MonkeyPatch,
    record_result: Callable[[str, str, str], None],
    rounds: int,
    limit: float,
) -> None:
    # A leak is there each time, what else the machine does is not: the least of three counts.
    registry = TokenRegistry(store, kek, fresh_seconds=3600)
    ours = min([await typical_shift(registry, rounds) for _ in range(3)], key=abs)
    monkeypatch.setattr(tokens.token_records, "hash_secret", lambda secret: secret)
    monkeypatch.setattr(tokens.hmac, "compare_digest", digit_by_digit)
    leaky = await typical_shift(TokenRegistry(store, kek, fresh_seconds=3600), rounds)
    record_result(
        "timing of token comparison",
        "does not depend on the prefix",
        f"{rounds:,} refusals each with 63 right and with 63 wrong digits, of {TOKENS} tokens: medians "
        f"differ by {ours:+.2%}; by {leaky:+.2%} with a comparison that stops at the first wrong digit",
    )
    assert leaky > 0.05, "the procedure would not find a leak"
    assert abs(ours) < limit
