"""A Llama, or a relative, from its own files: what `FusedLlama` takes of transformers' module.

Importing transformers' models takes 0.1 GB, which serving has no other use for. What the module knows
beside its weights is described once, by a process that compares both (`speed_trial.py`).
"""

from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import torch
from safetensors import safe_open
from torch.nn import functional

from ttmark.gen_service.engine.model.grouping import matrix_maker
from ttmark.gen_service.engine.model.llama import FusedLlama, layer_window
from ttmark.gen_service.engine.model.loaded_model import Acceleration, kernels_for

_EMBEDDING = "model.embed_tokens.weight"
_CONFIG = (
    *("vocab_size", "hidden_size", "intermediate_size", "hidden_act", "rms_norm_eps"),
    *("num_attention_heads", "num_key_value_heads"),
)


def describe(model: Any) -> dict[str, Any] | None:
    """What transformers' module knows beside its weights, as JSON; None: `PlainLlama` is not for it."""
    if not FusedLlama.suits(model) or model.config.hidden_act not in ("silu", "swish"):
        return None
    attentions = [layer.self_attn for layer in model.model.layers]
    config = {name: getattr(model.config, name) for name in _CONFIG}
    return {
        "config": config | {"head_dim": attentions[0].head_dim},
        "windows": [layer_window(attention) for attention in attentions],
        "frequencies": model.model.rotary_emb.inv_freq.tolist(),
        "rotary_scale": model.model.rotary_emb.attention_scaling,
        "tied": model.lm_head.weight is model.model.embed_tokens.weight,
    }


class PlainModule:
    """A module: weights and parts of its own, by the names that they have in the files."""

    bias = None

    def part(self, name: str) -> "PlainModule":
        """The part of that name, made where there is none yet."""
        return vars(self).setdefault(name, PlainModule())  # type: ignore[no-any-return]


class PlainLlama(PlainModule):
    """Stands in for transformers' module where that only has to be described, and its weights be taken.

    Args:
        folder: with the weights as safetensors.
        dtype: that they are to have; what they have already is mapped from the file.
        described: by `describe`.

    Raises:
        OSError, SafetensorError: a file is missing or damaged.
        KeyError, AttributeError, TypeError, ValueError: the files are those of another model.
    """

    def __init__(self, folder: Path, dtype: torch.dtype, described: Mapping[str, Any]) -> None:
        self.dtype, self.device = dtype, torch.device("cpu")
        self.config = SimpleNamespace(**described["config"])
        self.config.get_text_config = lambda: self.config
        self._folder = folder
        whole: PlainModule = self
        for name, tensor in self._tensors():
            *path, last = name.split(".")
            # What is small does not keep the map of a whole file.
            vars(reduce(PlainModule.part, path, whole))[last] = tensor.to(dtype, copy=tensor.dim() == 1)
        inner: Any = self.part("model")
        if described["tied"]:
            self.lm_head = inner.embed_tokens
        windows = described["windows"]
        inner.layers = [inner.layers.part(str(index)) for index in range(len(windows))]
        for layer, window in zip(inner.layers, windows, strict=True):
            layer.mlp.act_fn = functional.silu
            layer.self_attn.head_dim, layer.self_attn.sliding_window = self.config.head_dim, window
        inner.rotary_emb = SimpleNamespace(
            inv_freq=torch.tensor(described["frequencies"], dtype=torch.float32),
            attention_scaling=described["rotary_scale"],
        )

    def parameters(self) -> Iterator[torch.Tensor]:
        """Of the matrices, that which stays."""
        yield self.part("model").part("embed_tokens").weight  # type: ignore[attr-defined]

    def map_embedding_anew(self) -> None:
        """Lets the map go that all matrices were read from: of a new one, pages count that are read."""
        (weight,) = self.parameters()
        tensor = dict(self._tensors(_EMBEDDING))[_EMBEDDING]
        if tensor.dtype == self.dtype:
            weight.data = tensor

    def _tensors(self, *names: str) -> Iterator[tuple[str, torch.Tensor]]:
        index = self._folder / "model.safetensors.index.json"
        parts = set(orjson.loads(index.read_bytes())["weight_map"].values()) if index.exists() else set()
        for file in sorted(parts) or ["model.safetensors"]:
            with safe_open(self._folder / file, "pt") as opened:
                for name in opened.keys():  # noqa: SIM118 - no dictionary
                    if name in names or not names:
                        yield name, opened.get_tensor(name).detach()  # a view would hold the map for ever


def open_llama(
    folder: Path, dtype: str, *, described: Mapping[str, Any], kernels: bool, weights: str
) -> tuple[PlainLlama, Acceleration]:
    """A model as `describe` described it, and its matrices as `Acceleration` has them.

    Raises:
        RuntimeError, ValueError: no such matrices are made here; else see `PlainLlama`.
    """
    model = PlainLlama(folder, getattr(torch, dtype), described)
    fused = FusedLlama(model, matrix=matrix_maker(weights), kernels=kernels_for(model) if kernels else None)
    if weights != "plain":
        model.map_embedding_anew()
    return model, Acceleration(kernels, weights, fused)
