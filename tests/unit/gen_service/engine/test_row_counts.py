"""Padding to row counts that give the same bits."""

import torch

from ttmark.gen_service.engine.model.runner import RowCounts


def test_rows_are_rounded_up_to_a_safe_count() -> None:
    counts = RowCounts(frozenset({4, 8, 10}))
    padded = [counts.pad(rows) for rows in (1, 4, 5, 9, 11, 63, 64, 65, 130)]
    assert padded == [4, 4, 8, 10, 64, 64, 64, 68, 132]


def test_counts_whose_bits_differ_from_a_large_pass_are_not_safe() -> None:
    def logits_of(rows: int) -> torch.Tensor:
        error = {1: 1e-6, 2: 1e-6, 7: 1e-6}.get(rows, 0.0)
        return torch.arange(rows, dtype=torch.float64)[:, None].expand(rows, 5) + error

    counts = RowCounts.measure(logits_of, (64, 96))
    assert [counts.pad(rows) for rows in (1, 2, 3, 6, 7, 8)] == [3, 3, 3, 6, 8, 8]


def test_rows_fill_whole_vector_registers() -> None:
    counts = RowCounts.measure(lambda rows: torch.zeros(rows, 5), (12, 80))
    assert [counts.pad(rows) for rows in (1, 8, 9, 66)] == [8, 8, 16, 72]
