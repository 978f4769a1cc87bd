"""Figures about the model at a sampling setting, measured once per run and kept in its folder."""

from evaluation.cells import Cell
from evaluation.entropy import EntropyReport, measure_entropy
from evaluation.kept import read_kept, write_kept
from evaluation.language_model import LanguageModel
from evaluation.run import Run
from evaluation.settings import SamplingSetting
from evaluation.sources import EngineSource


class ModelFigures:
    """Entropy of a run's model, and the model outside the engine where an experiment needs it."""

    def __init__(self, run: Run, source: EngineSource) -> None:
        self._run = run
        self._source = source
        self._model: LanguageModel | None = None

    @property
    def model(self) -> LanguageModel:
        """The model, loaded when it is first asked for."""
        if self._model is None:
            self._model = LanguageModel(self._source.model)
        return self._model

    @property
    def end_tokens(self) -> frozenset[int]:
        """Tokens that end a text."""
        return frozenset(self._source.engine.eos_token_ids)

    def prompt(self, index: int) -> tuple[int, ...]:
        """The prompt of text `index` of every cell."""
        prompts = self._source.prompts
        return prompts[index % len(prompts)]

    def entropy(
        self, setting: SamplingSetting, tokens: int, texts: int, block_size: int = 2
    ) -> EntropyReport:
        """Along `texts` unwatermarked texts of `tokens` tokens, with the bounds up to `block_size`."""
        path = self._run.folder / "entropy" / f"{setting.slug}-n{tokens}-{texts}-r{block_size}.json"
        stored = read_kept(path, EntropyReport)
        if stored is None:
            plain = self._run.texts(Cell(None, 1, setting, tokens), texts)
            pairs = [(self.prompt(text.index), text.token_ids) for text in plain]
            stored = measure_entropy(self.model, setting, pairs, self._run.seed, block_size)
            write_kept(path, stored)
        return stored


def entropy_note(report: EntropyReport) -> str:
    """The line about entropy that goes with every table."""
    gains = [
        f"{what} a gain of {report.bound_gain(size):.2f}"
        for size, what in ((2, "pairs"), (3, "blocks of three"))
        if size <= len(report.bounds)
    ]
    return (
        f"Entropy {report.bits.estimate:.2f} bits per token after the filters,"
        f" {report.candidates.estimate:.1f} candidates on average ({report.tokens} tokens);"
        f" the bounds of Theorems 1 and 2 allow {', '.join(gains)}."
    )
