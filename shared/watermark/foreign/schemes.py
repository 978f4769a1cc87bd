"""The foreign schemes by name, with their parameters as the originals name them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ttmark.shared.watermark.foreign.foreign_mark import ForeignMark
from ttmark.shared.watermark.foreign.kgw import Kgw
from ttmark.shared.watermark.foreign.sglang_gumbel import SglangGumbel
from ttmark.shared.watermark.foreign.synthid_text import SynthIdText
from ttmark.shared.watermark.foreign.vllm_gumbel import VllmGumbel

Parameter = int | float | str
Parameters = Mapping[str, Parameter]
Secret = int | str | Sequence[int]
Secrets = Mapping[str, Secret]


@dataclass(frozen=True, slots=True)
class ForeignScheme:
    """A scheme of another system.

    Attributes:
        title: the system in words.
        defaults: what may be shown of its parameters, with the original's defaults; None: no default.
        secrets: names of its keys; those that are left out take the original's default.
        required: of both, those that have to be given.
        implied: parameters that can have one value alone here.
        ignored: further parameters of the original, which detection does not need.
        build: the mark.
    """

    title: str
    defaults: Mapping[str, Parameter | None]
    secrets: tuple[str, ...]
    required: frozenset[str]
    build: Callable[[Mapping[str, Any]], ForeignMark]
    implied: Mapping[str, Parameter]
    ignored: frozenset[str]

    def split(self, given: Mapping[str, Any]) -> tuple[dict[str, Parameter], dict[str, Secret]]:
        """Parameters with their defaults, and secrets, from what was given by the originals' names.

        Raises:
            ValueError: one is unknown, missing, or out of range. No value of a secret is named.
        """
        known = {*self.defaults, *self.secrets, *self.implied, *self.ignored}
        given = {name: value for name, value in given.items() if value is not None or name not in known}
        if unknown := given.keys() - known:
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}")
        if missing := self.required - given.keys():
            raise ValueError(f"missing: {', '.join(sorted(missing))}")
        for name, value in self.implied.items():
            if given.get(name, value) != value:
                raise ValueError(f"{name} must be {value}")
        chosen = {name: given.get(name, default) for name, default in self.defaults.items()}
        parameters = {name: _checked(name, value, self.defaults[name]) for name, value in chosen.items()}
        secrets = {name: given[name] for name in self.secrets if name in given}
        self.mark(parameters, secrets)
        return parameters, secrets

    def mark(self, parameters: Parameters, secrets: Secrets) -> ForeignMark:
        """The scheme with a key.

        Raises:
            ValueError: one is out of range.
        """
        return self.build({**parameters, **secrets})


def _checked(name: str, value: Any, default: Parameter | None) -> Parameter:
    """A parameter of the type of its default, a whole number where there is none."""
    kind = int if default is None else type(default)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        what = {int: "a whole number", float: "a number", str: "a word"}[kind]
        raise ValueError(f"{name} must be {what}")
    parameter: Parameter = value
    return parameter


def _whole(name: str, value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{name} must be a whole number")
    return value


def _hexadecimal(name: str, value: Any) -> int:
    if not isinstance(value, str) or not re.fullmatch(r"(0[xX])?[0-9a-fA-F]{1,16}", value):
        raise ValueError(f"{name} must be 1 to 16 hexadecimal digits in quotes")
    return int(value, 16)


def _vllm(given: Mapping[str, Any]) -> ForeignMark:
    return VllmGumbel(_whole("key", given["key"]), given["context_width"], given.get("alpha"))


def _sglang(given: Mapping[str, Any]) -> ForeignMark:
    second = None if given.get("key_b") is None else _hexadecimal("key_b", given["key_b"])
    first = _hexadecimal("key", given["key"])
    return SglangGumbel(first, second, given["context_window"], given["mixing_probability"])


def _kgw(given: Mapping[str, Any]) -> ForeignMark:
    _whole("hashing_key", given.get("hashing_key", 0))
    return Kgw(**given)


def _synthid(given: Mapping[str, Any]) -> ForeignMark:
    keys = given["keys"]
    if not isinstance(keys, Sequence) or isinstance(keys, str):
        raise ValueError("keys must be a list of whole numbers")
    return SynthIdText(**{**given, "keys": tuple(_whole("keys", key) for key in keys)})


_VLLM_IGNORED = frozenset(
    {"deduplicate_contexts", "deduplicate_contexts_max_history", "allow_target_only_watermarking"}
)

FOREIGN_SCHEMES: Mapping[str, ForeignScheme] = {
    "vllm-gumbel": ForeignScheme(
        title="vLLM (Gumbel)",
        defaults={"context_width": 4},
        secrets=("key",),
        required=frozenset({"key"}),
        build=_vllm,
        implied={"algorithm": "gumbel", "prf": "philox"},
        ignored=_VLLM_IGNORED | {"alpha"},
    ),
    "vllm-dual-gumbel": ForeignScheme(
        title="vLLM (Gumbel, two keys)",
        defaults={"context_width": 4, "alpha": 0.1},
        secrets=("key",),
        required=frozenset({"key"}),
        build=_vllm,
        implied={"algorithm": "dual_key_gumbel", "prf": "philox"},
        ignored=_VLLM_IGNORED,
    ),
    "sglang-gumbel": ForeignScheme(
        title="SGLang (Gumbel)",
        defaults={"context_window": 4, "mixing_probability": 0.5},
        secrets=("key", "key_b"),
        required=frozenset({"key"}),
        build=_sglang,
        implied={},
        ignored=frozenset({"max_probability", "default_enabled", "enforce_all"}),
    ),
    "kgw": ForeignScheme(
        title="transformers (KGW, green lists)",
        defaults={
            "vocab_size": None,
            "greenlist_ratio": 0.25,
            "seeding_scheme": "lefthash",
            "context_width": 1,
        },
        secrets=("hashing_key",),
        required=frozenset({"vocab_size"}),
        build=_kgw,
        implied={},
        ignored=frozenset({"bias"}),
    ),
    "synthid-text": ForeignScheme(
        title="transformers (SynthID-Text)",
        defaults={"ngram_len": None, "sampling_table_size": 1 << 16, "sampling_table_seed": 0},
        secrets=("keys",),
        required=frozenset({"keys", "ngram_len"}),
        build=_synthid,
        implied={},
        ignored=frozenset({"context_history_size", "skip_first_ngram_calls", "debug_mode"}),
    ),
}
