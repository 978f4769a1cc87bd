"""A model that is ready to run, and what makes its passes fast."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ttmark.gen_service.engine.model.attention import KvCache
from ttmark.gen_service.engine.model.llama import FusedLlama
from ttmark.gen_service.engine.model.runner import Runner
from ttmark.gen_service.engine.native import Kernels, find_kernels
from ttmark.shared.tokenization import TextTokenizer


@dataclass(frozen=True, slots=True)
class Acceleration:
    """What makes a runner fast.

    Attributes:
        kernels: the compiled ones attend for commits and probes, and compute what is small.
        weights: how the matrices lie: "plain", "packed" for oneDNN, "int4" or "int8".
        fused: the model's matrices as an earlier runner has them, so that they are not made again.
    """

    kernels: bool = False
    weights: str = "plain"
    fused: FusedLlama | None = field(default=None, compare=False, repr=False)

    @classmethod
    def as_in(cls, runner: Runner) -> "Acceleration":
        return cls(runner.kernels is not None, runner.weights, runner.fused)

    def runner(self, model: Any, cache: KvCache, *, reproducible: bool = True) -> Runner:
        return Runner(
            model,
            cache,
            reproducible=reproducible,
            kernels=kernels_for(model) if self.kernels else None,
            weights=self.weights,
            fused=self.fused,
        )


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What requests need to know of a model.

    Attributes:
        longest: tokens of a context.
        ends: tokens that end a text, and `start` the one that begins it.
        bytes_per_token: of the KV cache.
    """

    vocab_size: int
    longest: int
    ends: Sequence[int]
    start: int | None
    bytes_per_token: int


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready to run.

    Attributes:
        model: transformers' module, or a `PlainLlama`.
        acceleration: with which the engine was seen to compute what transformers does.
    """

    name: str
    model: Any
    tokenizer: TextTokenizer
    facts: ModelFacts
    acceleration: Acceleration = Acceleration()


def kernels_for(model: Any) -> Kernels | None:
    """The compiled kernels, for a model on a CPU whose heads they attend for."""
    size = _head_size(model.config.get_text_config())
    return find_kernels() if model.device.type == "cpu" and Kernels.suit(model.dtype, size) else None


def _head_size(text: Any) -> int:
    """Numbers of a head; with latent attention the larger of its keys and values."""
    latent = [getattr(text, name, None) or 0 for name in ("qk_head_dim", "v_head_dim")]
    size: int | None = max(latent) or getattr(text, "head_dim", None)
    return size or int(text.hidden_size) // int(text.num_attention_heads)


def usable_device(name: str) -> torch.device:
    """The device of a setting; "auto" is a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)


def boundary_tokens(generation: Any, text: Any, vocab_size: int) -> tuple[tuple[int, ...], int | None]:
    """Tokens that end a text, and the one that begins it, else one that ends it: what the model saw before
    texts in training.

    Args:
        generation: transformers' GenerationConfig, or None, and `text` the model's own for texts.
    """
    named = [getattr(config, "eos_token_id", None) for config in (generation, text)]
    ends = next((ids for ids in named if ids is not None), ())
    ends = tuple(ends) if isinstance(ends, list | tuple) else (int(ends),)
    starts = [getattr(config, "bos_token_id", None) for config in (generation, text)]
    known = (int(token) for token in (*starts, *ends) if token is not None)
    return ends, next((token for token in known if token < vocab_size), None)
