"""Curves of surprise, by the evidence of edited texts, as `ttmark eval core surprise` compares them."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.core import surprise
from ttmark.shared.watermark import ContextTracker, Watermark, key_lanes
from ttmark.shared.watermark.likelihood.reading import FITTED, Curve

KEY = bytes(range(16))
PAIRS = Watermark("gumbel", 2, 2)


def line(seed: int, *, edited: bool) -> dict[str, object]:
    """Pairs of words, one of forty each; a reader finds a word surprising that an editor put in."""
    rng, tracker = np.random.default_rng(seed), ContextTracker(2, 2)
    ids: list[int] = []
    while len(ids) < 120:
        blocks, offsets = rng.choice(5_000, (40, 2), replace=False), np.array([0, 40])
        probs, context = np.full(40, 1 / 40), tracker.next_context(ids)
        if context is not None:
            probs = PAIRS.reweight(key_lanes(KEY)[None], np.array([context]), blocks, probs, offsets)
        ids += blocks[rng.choice(40, p=probs)].tolist()
    said = np.full(len(ids), -2.0)
    for place in range(9, len(ids), 10) if edited else ():
        ids[place], said[place] = 6_000 + place, -15.0
    mark = {"scheme": "gumbel", "block_size": 2, "context_width": 2, "key": KEY.hex()}
    return {**mark, "edit": "words" if edited else "none", "ids": ids, "log_probs": said.tolist()}


def test_a_curve_that_follows_the_reader_is_ahead_on_edited_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surprise, "CURVES", (Curve(0.0, 9.0),))
    path = tmp_path / "readings.jsonl"
    lines = [line(seed, edited=edited) for seed in range(4) for edited in (True, False)]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    result = CliRunner().invoke(eval_app(), ["core", "surprise", "--readings", str(path)])
    assert result.exit_code == 0, result.output
    assert "words (4) | none (4)" in result.output
    rows = [row.split("|")[1:-1] for row in result.output.splitlines() if row.startswith("| 0")]
    means = {tuple(map(float, row[:4])): [float(cell) for cell in row[4:]] for row in rows}
    none, own = means[0.5, 11.0, 0.12, 0.0], means[0.0, 9.0, 0.12, 0.97]
    assert (FITTED.after, FITTED.calm, FITTED.per_bit, FITTED.most) in means
    assert own[0] > none[0] + 1.0
    assert own[1] == pytest.approx(none[1], abs=0.3)
