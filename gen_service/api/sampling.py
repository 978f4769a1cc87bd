"""From the fields of a request to the engine's sampling parameters."""

from collections.abc import Mapping
from typing import Any

from ttmark.gen_service.engine import SamplingParams
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.sampling import SamplingFields
from ttmark.shared.schemas.sampling_defaults import SamplingDefaults

_SEEDS = 2**63
_SAME_NAME = ("presence_penalty", "frequency_penalty", "ignore_eos")


def sampling_params(
    body: SamplingFields,
    defaults: SamplingDefaults,
    *,
    max_tokens: int,
    logprobs: int | None,
    vocab_size: int,
) -> SamplingParams:
    """Sampling parameters of the first completion; fields that are null keep the defaults.

    Raises:
        BadRequest: naming the field that the engine refuses.
    """
    given: dict[str, Any] = {name: value for name in _SAME_NAME if (value := getattr(body, name)) is not None}
    try:
        return SamplingParams(
            max_tokens=max_tokens,
            logprobs=logprobs,
            stop=_stop(body.stop),
            seed=None if body.seed is None else body.seed % _SEEDS,
            logit_bias=_logit_bias(body.logit_bias or {}, vocab_size),
            **defaults.under(body),
            **given,
        )
    except ValueError as error:
        message = str(error)
        raise BadRequest(f"{message}.", param=message.partition(" ")[0]) from error


def seed_of_choice(seed: int | None, choice: int) -> int | None:
    """The seed of a prompt's completion number `choice`; the first has the request's own."""
    return None if seed is None else (seed + choice) % _SEEDS


def _stop(stop: str | list[str] | None) -> tuple[str, ...]:
    if stop is None:
        return ()
    return (stop,) if isinstance(stop, str) else tuple(stop)


def _logit_bias(biases: Mapping[str, float], vocab_size: int) -> dict[int, float]:
    by_id = {int(token_id): bias for token_id, bias in biases.items()}
    if by_id and max(by_id) >= vocab_size:
        raise BadRequest(
            f"logit_bias: token ids must be below the vocabulary size, {vocab_size}.", param="logit_bias"
        )
    return by_id
