"""`frontier`: what it says of profiles agrees with slow, obvious ways to the same figures."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ttmark.evaluation.cells import Cell, SamplingSetting
from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.experiments import frontier
from ttmark.evaluation.language_model import Level
from ttmark.evaluation.profiles import Profile, entropy_kept
from ttmark.evaluation.report.result import Result
from ttmark.evaluation.word_edits import found
from ttmark.shared.watermark import Watermark

SETTING = SamplingSetting(50, 0.95, 1.0)


def test_profiles_are_compared_on_the_simulated_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gumbel, pairs = Profile("gumbel", 1, 2), Profile("gumbel", 2, 1)
    monkeypatch.setattr(frontier, "PROFILES", (gumbel, Profile("synthid", 1, 2), pairs))
    monkeypatch.setattr(frontier, "REPEATED", {gumbel: None})
    sizes = ("--texts", "2", "--length", "60", "--prompt-count", "2", "--same-key", "3", "--unmarked", "2")
    options = ("--model", "simulated", "--setting", "default", "--out", str(tmp_path))
    result = CliRunner().invoke(eval_app(), ["frontier", "--profile", "gumbel", *sizes, *options])
    assert result.exit_code == 0, result.output
    first, second, *crowds = Result.load(tmp_path / "frontier.json").data
    assert (first["profile"]["block_size"], second["profile"]["block_size"]) == (1, 2)
    assert first["kept"]["estimate"] == second["kept"]["estimate"] == 0.0
    assert first["rows"] < second["rows"]
    assert [(crowd["tokens"], crowd["requests"]) for crowd in crowds] == [
        (24, 20),
        (24, 200),
        (60, 20),
        (60, 200),
    ]
    for crowd in crowds:
        shares = [share["estimate"] for share in crowd["distinct"]]
        assert shares == sorted(shares)
        assert shares[0] < shares[-1]


def test_a_name_that_no_profile_has_is_refused(tmp_path: Path) -> None:
    options = ("--model", "simulated", "--setting", "default", "--out", str(tmp_path))
    result = CliRunner().invoke(eval_app(), ["frontier", "--profile", "mcmark", *options])
    assert result.exit_code == 1
    assert "no profile is called mcmark" in result.output


def test_a_pool_costs_its_logarithm() -> None:
    log10_p = np.array([-5.0, -6.0, -7.0, 0.0])
    assert [found(log10_p, 1e-5, pool).estimate for pool in (1, 10, 11, 101)] == [0.75, 0.5, 0.25, 0.0]


def test_a_tournament_leaves_less_entropy_the_deeper_it_is() -> None:
    places = [[Level([[token] for token in range(4)], np.full(4, 0.25))]] * 60
    kept = [
        entropy_kept(Watermark("synthid", 1, 2, {"depth": depth}), places, 7).estimate for depth in (1, 4, 12)
    ]
    assert 1.0 > kept[0] > kept[1] > kept[2] > 0.0
    # One layer over four equal candidates: 0, 1, 2, 3 or 4 of them win, and have twice what others have.
    winners = {k: [(1 + (4 - k) / 4) / 4] * k + [(1 - k / 4) / 4] * (4 - k) for k in range(5)}
    ways = {0: 1, 1: 4, 2: 6, 3: 4, 4: 1}
    bits = {k: -sum(p * np.log2(p) for p in probs if p > 0) for k, probs in winners.items()}
    exact = sum(ways[k] * bits[k] for k in winners) / 16 / 2
    assert kept[0] == pytest.approx(exact, abs=0.02)


def test_keys_of_a_pool_are_as_many_as_it_has_and_drawn_alike() -> None:
    cell = Cell("gumbel", 2, SETTING, 24, pool=16)
    keys = [cell.key(0, index) for index in range(1_600)]
    counts = np.unique(keys, return_counts=True)[1]
    assert len(counts) == 16
    assert counts.min() > 60
    assert len({Cell("gumbel", 2, SETTING, 24, pool=1).key(0, index) for index in range(9)}) == 1
