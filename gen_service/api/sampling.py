"""From the fields of a request to the engine's sampling parameters."""

from collections.abc import Collection, Mapping
from typing import Any

from ttmark.gen_service.engine import SamplingParams
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.sampling import SamplingDefaults, SamplingFields

_SEEDS = 2**63
_SAME_NAME = ("presence_penalty", "frequency_penalty", "ignore_eos")


def sampling_params(
    body: SamplingFields,
    defaults: SamplingDefaults,
    *,
    max_tokens: int,
    logprobs: int | None,
    vocab_size: int,
    ends: Collection[int] = (),
    bad_words: tuple[tuple[int, ...], ...] = (),
) -> SamplingParams:
    """Sampling parameters of the first completion; fields that are null keep the defaults.

    Args:
        ends: tokens that end a text of the model.
        bad_words: the request's, as token ids.

    Raises:
        BadRequest: naming the field that the engine refuses.
    """
    stop_token_ids = tuple(dict.fromkeys(body.stop_token_ids or ()))
    _check_ids("stop_token_ids", stop_token_ids, vocab_size)
    if len(bad_words) + len({*stop_token_ids, *ends}) >= vocab_size:
        raise BadRequest("bad_words: could leave no token to go on with.", param="bad_words")
    given: dict[str, Any] = {name: value for name in _SAME_NAME if (value := getattr(body, name)) is not None}
    try:
        return SamplingParams(
            max_tokens=max_tokens,
            logprobs=logprobs,
            stop=_stop(body.stop),
            min_tokens=body.min_tokens or 0,
            stop_token_ids=stop_token_ids,
            bad_words=bad_words,
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
    _check_ids("logit_bias", by_id, vocab_size)
    return by_id


def _check_ids(field: str, ids: Collection[int], vocab_size: int) -> None:
    if ids and max(ids) >= vocab_size:
        raise BadRequest(f"{field}: token ids must be below the vocabulary size, {vocab_size}.", param=field)
