"""Mixtures of p, fitted to marked texts that a model has read, as `ttmark eval core mixtures` fits them."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.core.mixtures import CLASSES, Blocks
from ttmark.shared.watermark import ContextTracker, Watermark, key_lanes
from ttmark.shared.watermark.likelihood.mixtures import POINTS

KEY = bytes(range(16))
SINGLE = Watermark("gumbel", 1, 2)


def line(seed: int, tokens: int = 200) -> dict[str, Any]:
    """A text in which one of two and one of forty words comes next in turn, read by a model that is near."""
    rng, tracker = np.random.default_rng(seed), ContextTracker(1, 2)
    written: list[int] = []
    while len(written) < tokens:
        blocks = rng.choice(5_000, (2 if len(written) % 2 else 40, 1), replace=False)
        probs = np.full(len(blocks), 1 / len(blocks))
        context = tracker.next_context(written)
        if context is not None:
            contexts, offsets = np.array([context]), np.array([0, len(blocks)])
            probs = SINGLE.reweight(key_lanes(KEY)[None], contexts, blocks, probs, offsets)
        written += blocks[rng.choice(len(blocks), p=probs)].tolist()
    said = [rng.uniform(-0.2, 0.2) - math.log(2 if place % 2 else 40) for place in range(tokens)]
    mark = {"scheme": "gumbel", "block_size": 1, "context_width": 2, "key": KEY.hex()}
    return {**mark, "written": written, "ids": written, "log_probs": said}


@pytest.fixture(name="readings", scope="module")
def _readings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mixtures") / "readings.jsonl"
    path.write_text("".join(json.dumps(line(seed)) + "\n" for seed in range(16)))
    return path


def test_what_a_reader_says_is_worth_evidence_on_texts_that_were_not_fitted_to(
    readings: Path, tmp_path: Path
) -> None:
    options = ["--readings", str(readings), "--tables", str(tmp_path)]
    result = CliRunner().invoke(eval_app(), ["core", "mixtures", *options])
    assert result.exit_code == 0, result.output
    row = next(row for row in result.output.splitlines() if row.startswith("| 1 "))
    plain, read = (float(cell) for cell in row.split("|")[4:6])
    assert 0.5 < plain < read - 0.3


def test_the_written_table_has_unlikely_blocks_first(readings: Path, tmp_path: Path) -> None:
    CliRunner().invoke(
        eval_app(), ["core", "mixtures", "--readings", str(readings), "--tables", str(tmp_path)]
    )
    table = json.loads((tmp_path / "mixtures-r1.json").read_text())
    assert len(table["read"]) == CLASSES == len(table["limits"]) + 1
    assert [sum(weights) for weights in (table["plain"], *table["read"])] == pytest.approx(
        [1.0] * (CLASSES + 1)
    )
    means = np.array(table["read"]) @ np.array(POINTS)
    assert means[0] == pytest.approx(1 / 40, abs=0.02)
    assert means[-1] == pytest.approx(1 / 2, abs=0.15)


def test_a_text_counts_up_to_the_first_token_that_its_words_are_not_read_as() -> None:
    whole = line(1)
    other = {**whole, "ids": [*whole["written"][:50], 6_000, *whole["written"][51:]]}
    assert len(Blocks.of(whole).log_probs) == 198
    assert len(Blocks.of(other).log_probs) == 48


def test_without_texts_there_is_nothing_to_fit() -> None:
    result = CliRunner().invoke(eval_app(), ["core", "mixtures"])
    assert result.exit_code == 2
    assert "--readings" in result.output
