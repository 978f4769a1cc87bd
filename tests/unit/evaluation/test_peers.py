"""`peers`: what it says of each system agrees with slow, obvious ways to the same figures."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BayesianDetectorConfig, BayesianDetectorModel
from typer.testing import CliRunner

from ttmark.evaluation.cells import Cell, SamplingSetting, prf_key
from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.intervals import Sample
from ttmark.evaluation.peers.bayesian import Bayesian, stacked, train
from ttmark.evaluation.peers.detectors import Document, Measured, Ours, synthid, weighted_mean
from ttmark.evaluation.peers.measure import FPRS, power_of
from ttmark.evaluation.peers.systems import LAYERS
from ttmark.evaluation.report.result import Result
from ttmark.shared.watermark import detect_direct

SETTING = SamplingSetting(50, 0.95, 1.0)


class Fixed:
    """A detector that says what it is told."""

    title = "fixed"

    def __init__(self, log10_p: list[float], least: float = 0.0) -> None:
        self.least = least
        self._log10_p = np.array(log10_p)

    def log10_p(self, documents: list[Document], *, edited: bool) -> Sample:
        return self._log10_p


def documents(count: int, tokens: int) -> list[Document]:
    rng = np.random.default_rng(1)
    return [(rng.bytes(16), rng.integers(0, 500, tokens)) for _ in range(count)]


def test_rates_are_counts_and_small_p_values_are_left_to_who_can_state_them() -> None:
    log10_p = [-1.0, -2.5, -4.0, -6.0]
    exact = power_of(Fixed(log10_p), documents(4, 3), 1, edited=False)
    assert [rate and rate.estimate for rate in exact.tpr] == [0.75, 0.5, 0.25]
    assert exact.median_log10_p is not None
    assert exact.median_log10_p.estimate == -3.25
    measured = power_of(Fixed(log10_p, least=1e-3), documents(4, 3), 1, edited=False)
    assert measured.tpr[:2] == exact.tpr[:2]
    assert measured.tpr[2] is None
    assert measured.median_log10_p is None


def test_copies_of_a_text_are_one_observation() -> None:
    copies = power_of(Fixed([-9.0, -9.0, 0.0] * 8), documents(24, 3), 3, edited=True)
    rate = copies.tpr[FPRS.index(1e-2)]
    assert rate is not None
    assert (rate.estimate, rate.low, rate.high) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    all_found = power_of(Fixed([-9.0] * 24), documents(24, 3), 3, edited=True).tpr[0]
    assert all_found is not None
    assert all_found.low == pytest.approx(0.025 ** (1 / 8))


def test_a_measured_p_value_is_the_share_of_scores_under_other_keys_that_reach_it() -> None:
    texts, seed = documents(5, 40), 7
    detector = Measured("mean", weighted_mean, 20, seed)

    def score(key: bytes, tokens: np.ndarray) -> float:
        return float((synthid(key).read(tokens).bits @ np.linspace(10, 1, LAYERS)).mean())

    null = [
        score(prf_key(seed, "peers", number, row), tokens)
        for number in range(4)
        for row, (_, tokens) in enumerate(texts)
    ]
    expected = [(1 + sum(other >= score(key, tokens) for other in null)) / 21 for key, tokens in texts]
    assert 10 ** detector.log10_p(texts, edited=False) == pytest.approx(expected)


def test_log_odds_give_the_posterior_of_transformers() -> None:
    torch.manual_seed(0)
    model = BayesianDetectorModel(BayesianDetectorConfig(watermarking_depth=LAYERS))
    bits = [np.random.default_rng(row).integers(0, 2, (length, LAYERS)) for row, length in enumerate((9, 4))]
    posterior = model(*stacked(bits))[0]
    odds = torch.from_numpy(Bayesian(model).log_odds(bits))
    torch.testing.assert_close(torch.sigmoid(odds).float(), posterior.detach())


def test_the_trained_detector_knows_marked_bits_of_new_texts_and_its_own_layers() -> None:
    rng = np.random.default_rng(0)

    def texts(count: int, chance: float) -> list[np.ndarray]:
        # The first layers are marked alone, as where little entropy is left for the deep ones.
        chances = np.where(np.arange(LAYERS) < 6, chance, 0.5)
        return [(rng.random((40, LAYERS)) < chances).astype(np.int64) for _ in range(count)]

    detector = train(texts(16, 0.7), texts(16, 0.5))
    groups = texts(30, 0.7), texts(30, 0.5)

    def separation(scores: list[Sample]) -> float:
        """Distance of the means in standard deviations."""
        return float((scores[0].mean() - scores[1].mean()) / np.sqrt((scores[0].var() + scores[1].var()) / 2))

    learned = separation([detector.log_odds(group) for group in groups])
    plain = separation([np.array([bits.mean() for bits in group]) for group in groups])
    assert learned > 1.3 * plain > 1.3


def test_too_few_texts_to_learn_from_are_refused() -> None:
    few = [np.ones((5, LAYERS), dtype=np.int64)] * 3
    with pytest.raises(ValueError, match="four texts"):
        train(few, few)


def test_our_texts_are_read_directly_and_edited_ones_by_the_question_of_the_service() -> None:
    cell = Cell("gumbel", 2, SETTING, 40)
    texts = documents(2, 40)
    whole, changed = (Ours(cell).log10_p(texts, edited=edited) for edited in (False, True))
    assert whole.tolist() == [detect_direct(cell.watermark(), key, tokens).log10_p for key, tokens in texts]
    assert (changed <= 0.0).all()
    assert changed.tolist() != whole.tolist()


@pytest.mark.slow
def test_the_command_compares_systems_on_the_demo_model(tmp_path: Path) -> None:
    sizes = "--texts 3 --length 50 --training 4 --completions 2 --prompt-count 2 --null-scores 1000"
    few = "--loss-texts 2 --speed-tokens 4 --scheme gumbel --block-size 2"
    options = ["--model", "demo", "--setting", "default", "--threads", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(eval_app(), ["peers", *sizes.split(), *few.split(), *options])
    assert result.exit_code == 0, result.output
    assert "vLLM Gumbel is left out" in result.output
    rows = [row for row in Result.load(tmp_path / "peers.json").data if "power" in row]
    assert [(row["system"], row["detector"]) for row in rows] == [
        ("transformers SynthID-Text", "exact, its mean score"),
        ("transformers SynthID-Text", "weighted mean"),
        ("transformers SynthID-Text", "Bayesian, trained"),
        ("transformers KGW", "exact"),
        ("ours: Gumbel r=2", "exact"),
    ]
    for row in rows:
        assert row["tokens"] == [25, 50]
        whole, edited = row["power"][-1], row["edits"][1]
        assert whole["tpr"][0]["estimate"] >= edited["tpr"][0]["estimate"]
        assert (whole["tpr"][1] is None) == (not row["detector"].startswith("exact"))
        assert row["seconds"] > 0
    baselines = Result.load(tmp_path / "peers.json").data[len(rows) :]
    assert baselines[-1]["seconds"] > baselines[1]["seconds"]  # over the whole vocabulary it is slow
    again = CliRunner().invoke(eval_app(), ["peers", "--system", "kgw", *options])
    assert again.exit_code == 1
    assert "unknown: kgw" in again.output
