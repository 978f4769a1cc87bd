"""Profiles that a deployment may choose between, and how much each leaves, marks and keeps through edits."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.cells import Cell, Parameters, SamplingSetting, sampling_seed
from ttmark.evaluation.edits import Material
from ttmark.evaluation.entropy import entropy_bits
from ttmark.evaluation.intervals import Interval, bootstrap
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.language_model import LanguageModel, Level, block_levels
from ttmark.evaluation.run import Completion, rows_per_token
from ttmark.evaluation.spans import plant
from ttmark.evaluation.word_edits import EditedRate, edited_rates, found
from ttmark.shared.watermark import Watermark, detect_direct, detect_localized, key_lanes

BRANCHES = 8
"""Branch budget of a service (docs/adr/0073)."""
FPR, POOLS = 1e-5, (1, 4, 16, 64, 256, 1024)
DOCUMENT = 800
"""Tokens by people around a planted text."""
ENTROPY_TEXTS, ENTROPY_BLOCKS, ENTROPY_KEYS = 32, 2, 8
"""Texts along which entropy is taken, blocks of each, and keys that each block is marked with."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What distinguishes a key from another."""

    scheme: str
    block_size: int
    context_width: int
    parameters: Parameters = ()

    def cell(self, setting: SamplingSetting, tokens: int) -> Cell:
        """Texts of the profile, each with a key of its own."""
        return Cell(
            self.scheme,
            self.block_size,
            setting,
            tokens,
            self.context_width,
            self.parameters,
            max_branches=BRANCHES,
        )

    def __str__(self) -> str:
        parts = [self.scheme, *(f"{name} {value:g}" for name, value in self.parameters)]
        parts += [f"r {self.block_size}", f"H {self.context_width}"]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One profile at one setting.

    Attributes:
        rows: rows of forward passes per token, prompts left out.
        kept: share of a block's entropy that is left once key and context are given; None: not measured.
        median_log10_p: of direct detection from token ids, for a pool of one key.
        tpr: at FPR, for each of POOLS; p-values are multiplied by the size of the pool.
        planted: of `scan` at FPR with one key, the text inside `DOCUMENT` tokens by people.
        edits: of aligned detection.
    """

    profile: Profile
    setting: SamplingSetting
    texts: int
    rows: float
    kept: Interval | None
    median_log10_p: Interval
    tpr: tuple[Interval, ...]
    planted: Interval
    edits: tuple[EditedRate, ...]


def measure_profiles(
    lab: Lab,
    profiles: Sequence[Profile],
    setting: SamplingSetting,
    length: int,
    count: int,
    human: Path | None,
    *,
    entropy: bool,
) -> list[ProfileRow]:
    """One row per profile.

    `human` is where the words come from that are put into texts. `entropy` also measures what is left of it,
    which takes a pass of the model for each of some hundred distributions.
    """
    # Over all keys marked texts are distributed as those without a mark: no further ones are needed.
    texts = lab.run.texts(profiles[0].cell(setting, length), count)[: ENTROPY_TEXTS * entropy]
    pairs = [(lab.prompt(text.index), text.token_ids) for text in texts]
    places = block_distributions(lab.source.language_model, setting, pairs, lab.run.seed) if pairs else []
    human_texts = lab.human_texts(human)
    material = Material.of(human_texts)
    around = [np.array(tokens) for tokens in map(lab.source.tokenizer.encode, human_texts) if tokens]
    return [
        _profile_row(lab, profile, profile.cell(setting, length), count, places, material, around)
        for profile in profiles
    ]


def _profile_row(
    lab: Lab,
    profile: Profile,
    cell: Cell,
    count: int,
    places: Sequence[Sequence[Level]],
    material: Material,
    around: Sequence[NDArray[np.int64]],
) -> ProfileRow:
    texts = lab.run.texts(cell, count)
    clean = np.array([log10_direct(cell, lab.run.seed, text) for text in texts])
    planted = [log10_planted(cell, lab.run.seed, text, around) for text in texts]
    return ProfileRow(
        profile=profile,
        setting=cell.setting,
        texts=count,
        rows=rows_per_token(lab.run.stored(cell), lab.prompt_rows),
        kept=entropy_kept(cell.watermark(), places, lab.run.seed) if places else None,
        median_log10_p=bootstrap(lambda values: np.median(values, axis=-1), clean),
        tpr=tuple(found(clean, FPR, pool) for pool in POOLS),
        planted=found(np.array(planted), FPR, 1),
        edits=tuple(edited_rates(lab, cell, texts, material)),
    )


def log10_direct(cell: Cell, seed: int, text: Completion) -> float:
    """log10 p of a text under its own key, from its token ids."""
    return detect_direct(cell.watermark(), cell.key(seed, text.index), text.tokens()).log10_p


def log10_planted(cell: Cell, seed: int, text: Completion, around: Sequence[NDArray[np.int64]]) -> float:
    """log10 p of `scan` for a document by people that holds the text."""
    places = np.random.default_rng(sampling_seed(seed, "document", text.index))
    tokens = plant(around, [text.tokens()], DOCUMENT + cell.tokens, places).tokens
    return detect_localized(cell.watermark(), cell.key(seed, text.index), tokens).log10_p


def block_distributions(
    model: LanguageModel,
    setting: SamplingSetting,
    texts: Sequence[tuple[Sequence[int], Sequence[int]]],
    seed: int,
) -> list[list[Level]]:
    """The distributions of the next token and the next pair at some places of (prompt, completion) pairs."""
    generator = np.random.default_rng(seed)
    levels = []
    for prompt, completion in texts:
        places = generator.choice(len(completion), size=min(ENTROPY_BLOCKS, len(completion)), replace=False)
        levels += [list(block_levels(model, setting, prompt, completion[:place], 2)) for place in places]
    return levels


def entropy_kept(watermark: Watermark, places: Sequence[Sequence[Level]], seed: int) -> Interval:
    """Share of the entropy of a block that is left once key and context are given."""
    generator, pairs = np.random.default_rng(seed), []
    for levels in places:
        paths, probs = levels[watermark.block_size - 1]
        given = [_marked_bits(watermark, paths, probs, generator) for _ in range(ENTROPY_KEYS)]
        pairs.append((np.mean(given), _bits(probs)))
    return bootstrap(_ratio, np.array(pairs))


def _ratio(pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ratio of the means of two columns [.., n, 2]; 0 where the second is all zeros."""
    means = pairs.mean(axis=-2)
    ratio: NDArray[np.float64] = means[..., 0] / np.maximum(means[..., 1], np.finfo(np.float64).tiny)
    return ratio


def _marked_bits(
    watermark: Watermark, paths: list[list[int]], probs: NDArray[np.float64], generator: np.random.Generator
) -> float:
    """Entropy of the blocks under a random key and context."""
    key = key_lanes(generator.bytes(16))[None]
    context = generator.integers(1 << 31, size=(1, watermark.context_width))
    return _bits(watermark.reweight(key, context, np.array(paths), probs, np.array([0, len(paths)])))


def _bits(probs: NDArray[np.float64]) -> float:
    return entropy_bits(probs[probs > 0.0])
