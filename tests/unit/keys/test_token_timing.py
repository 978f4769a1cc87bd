"""How long it takes to refuse a token does not tell how much of it was right."""

import asyncio
import random
import time
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import ks_2samp

from shared.keys import InvalidToken, KeyEncryptionKey, RecordStore, Scope, TokenRegistry

ROUNDS = 20_000


@pytest.mark.slow
async def test_the_time_of_a_refusal_does_not_depend_on_the_right_prefix(
    store: RecordStore, kek: KeyEncryptionKey, record_result: Callable[[str, str, str], None]
) -> None:
    registry = TokenRegistry(store, kek, fresh_seconds=3600)
    plain, _ = await registry.create(tenant="acme", scopes=[Scope.DETECT])
    await registry.authenticate(plain)
    head, secret = plain[:-64], plain[-64:]
    other = "".join("0" if digit != "0" else "1" for digit in secret)  # wrong in every digit
    wrong = {right: head + secret[:right] + other[right:] for right in (0, 16, 32, 63)}
    times: dict[int, list[int]] = {right: [] for right in wrong}
    order = random.Random(1)
    for _ in range(ROUNDS):
        # In a new order each round, so that whatever else the machine does strikes all alike.
        for right in order.sample(list(wrong), len(wrong)):
            begin = time.perf_counter_ns()
            try:
                await registry.authenticate(wrong[right])
            except InvalidToken:
                times[right].append(time.perf_counter_ns() - begin)
        if len(times[0]) % 1000 == 0:
            await asyncio.sleep(0)
    reference = np.array(times[0])
    quartiles = {right: np.quantile(samples, [0.25, 0.5, 0.75]) for right, samples in times.items()}
    shifts = {right: abs(quartiles[right][1] / quartiles[0][1] - 1) for right in (16, 32, 63)}
    p_values = [ks_2samp(reference, np.array(times[right])).pvalue for right in (16, 32, 63)]
    record_result(
        "timing of token comparison",
        "does not depend on the prefix",
        f"{ROUNDS:,} refusals each with 0, 16, 32 and 63 right digits: medians differ by at most "
        f"{max(shifts.values()):.2%}, smallest of three Kolmogorov-Smirnov p-values {min(p_values):.3f}",
    )
    # A comparison that ends at the first wrong digit takes tens of nanoseconds longer for 63 right ones,
    # in some ten microseconds; the level of 1e-6 keeps the test from failing by chance.
    assert max(shifts.values()) < 0.01
    assert min(p_values) > 1e-6 / 3
