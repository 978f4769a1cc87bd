"""The simulated language model as a source of texts that is counted, and the demo's tokenizer."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.progress import Progress

from tests.harness.simulated_model import SimulatedSource
from ttmark.evaluation.experiment_cells import Cell
from ttmark.evaluation.run_folder import OnText, OnTokens, Run
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.shared.tokenization import TextTokenizer


class CountedSource(SimulatedSource):
    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, int]] = []

    def generate(
        self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText, on_tokens: OnTokens
    ) -> None:
        self.made += [(cell.name, index) for index in indices]
        super().generate(cell, indices, seed, on_text, on_tokens)


@pytest.fixture
def source() -> CountedSource:
    return CountedSource()


@pytest.fixture
def open_run(source: CountedSource, tmp_path: Path) -> Callable[[], Run]:
    return lambda: Run(tmp_path / "run", source, 0, Progress(disable=True))


@pytest.fixture(scope="session")
def tokenizer() -> TextTokenizer:
    return TextTokenizer.load(DEMO_MODEL_PATH)
