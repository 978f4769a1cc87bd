"""Options by the names that transformers gives them, as the engine's."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from ttmark.gen_service.decoding.request import SamplingParams

MAX_NEW_TOKENS = 256
NAMES = (
    "max_new_tokens",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "do_sample",
    "seed",
    "stop_strings",
)


def sampling_params(options: Mapping[str, Any], defaults: Mapping[str, Any], number: int) -> SamplingParams:
    """Of prompt `number`, whose seed is the given one plus it.

    Args:
        defaults: the model's own; an option that is None or left out has that.

    Raises:
        ValueError: an unknown name, or a value out of range.
    """
    for name in options:
        if name not in NAMES:
            near = get_close_matches(name, NAMES, n=1, cutoff=0)[0]
            raise ValueError(f"generate has no option {name!r}; did you mean {near!r}?")
    chosen = {**defaults, **{name: value for name, value in options.items() if value is not None}}
    stop, seed = chosen.get("stop_strings", ()), chosen.get("seed")
    return SamplingParams(
        max_tokens=chosen.get("max_new_tokens", MAX_NEW_TOKENS),
        temperature=float(chosen.get("temperature", 1.0)) if chosen.get("do_sample", True) else 0.0,
        top_k=chosen.get("top_k", 0),
        top_p=float(chosen.get("top_p", 1.0)),
        min_p=float(chosen.get("min_p", 0.0)),
        repetition_penalty=float(chosen.get("repetition_penalty", 1.0)),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        seed=None if seed is None else seed + number,
    )
