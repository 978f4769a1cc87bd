"""A language model that costs nothing: every next token has the same distribution; the demo's tokenizer."""

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from rich.progress import Progress

from ttmark.evaluation.experiment_cells import Cell, sampling_seed
from ttmark.evaluation.run_folder import Completion, OnText, Run
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import key_lanes

VOCABULARY = 12


class ZipfSource:
    """Texts of independent tokens, watermarked as a generator does it."""

    def __init__(self) -> None:
        weights = 1.0 / np.arange(1, VOCABULARY + 1)
        self._probs = weights / weights.sum()
        self.made: list[tuple[str, int]] = []

    def generate(self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText) -> None:
        for index in indices:
            self.made.append((cell.name, index))
            draws = np.random.default_rng(sampling_seed(seed, cell.name, index))
            key = cell.key(seed, index)
            on_text(Completion(index, tuple(self._text(cell, key, draws))))

    def _text(self, cell: Cell, key: bytes, draws: np.random.Generator) -> list[int]:
        if cell.scheme is None:
            return draws.choice(VOCABULARY, size=cell.tokens, p=self._probs).tolist()
        watermark = cell.watermark()
        tracker = watermark.tracker()
        blocks = np.array(list(product(range(VOCABULARY), repeat=cell.block_size)))
        joint = self._probs[blocks].prod(axis=1)
        offsets = np.array([0, len(blocks)])
        lanes = key_lanes(key)[None]
        tokens: list[int] = []
        while len(tokens) < cell.tokens:
            context = tracker.next_context(tokens)
            probs = joint
            if context is not None:
                probs = watermark.reweight(lanes, np.array([context]), blocks, joint, offsets)
            tokens += blocks[draws.choice(len(blocks), p=probs / probs.sum())].tolist()
        return tokens[: cell.tokens]


@pytest.fixture
def source() -> ZipfSource:
    return ZipfSource()


@pytest.fixture
def open_run(source: ZipfSource, tmp_path: Path) -> Callable[[], Run]:
    return lambda: Run(tmp_path / "run", source, 0, Progress(disable=True))


@pytest.fixture(scope="session")
def tokenizer() -> TextTokenizer:
    return TextTokenizer.load(DEMO_MODEL_PATH)
