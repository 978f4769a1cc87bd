"""Bias and penalties on logits."""

import pytest
import torch

from ttmark.gen_service.decoding.penalties import LogitAdjustments


def slow(row: list[float], adjustments: LogitAdjustments, history: list[int]) -> list[float]:
    adjusted = []
    for token, logit in enumerate(row):
        count = history.count(token)
        penalty = adjustments.frequency * count + adjustments.presence * (count > 0)
        adjusted.append(logit + adjustments.bias.get(token, 0.0) - penalty)
    return adjusted


@pytest.mark.parametrize(
    "adjustments",
    [
        LogitAdjustments(presence=0.5),
        LogitAdjustments(frequency=-0.7),
        LogitAdjustments(bias={2: 3.0, 9: -100.0}),
        LogitAdjustments(0.5, 0.25, {4: 1.5}),
    ],
)
def test_every_branch_is_penalised_for_the_completion_and_for_its_own_path(
    adjustments: LogitAdjustments,
) -> None:
    logits = torch.randn((3, 10), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    completion, paths = [4, 4, 7], [(4, 1), (1, 1), (2, 3)]
    expected = [
        slow(row, adjustments, completion + list(path))
        for row, path in zip(logits.tolist(), paths, strict=True)
    ]
    adjustments.apply(logits, completion, paths)
    torch.testing.assert_close(logits, torch.tensor(expected, dtype=torch.float64))


def test_without_values_nothing_is_active() -> None:
    assert not LogitAdjustments().active
