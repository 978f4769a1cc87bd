"""Loads a transformers model, refuses what the engine cannot serve, and checks what it computes.

Its layers call our attention, which is registered with `AttentionInterface`; the plan of the pass comes
through the model as a keyword.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import structlog
import torch
from torch.nn import functional
from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from ttmark.gen_service.engine.errors import ModelLoadError
from ttmark.gen_service.engine.memory import available_memory
from ttmark.gen_service.engine.model.attention import AttentionPlan, KvCache, attend
from ttmark.gen_service.engine.model.autotune import Choice, choices_among, fewest_seconds
from ttmark.gen_service.engine.model.grouping import BITS, Grouping, group_linears
from ttmark.gen_service.engine.model.llama import FusedLlama, Matrix
from ttmark.gen_service.engine.model.loaded_model import (
    Acceleration,
    ModelFacts,
    boundary_tokens,
    kernels_for,
    usable_device,
)
from ttmark.gen_service.engine.model.plain_llama import describe, open_llama
from ttmark.gen_service.engine.model.ragged_batch import Append, Probe
from ttmark.gen_service.engine.model.runner import Runner
from ttmark.gen_service.engine.native import find_kernels
from ttmark.gen_service.engine.native.grouped import GroupedMatrix
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.observability.memory import release_free_memory

Seen = TypeVar("Seen")

ATTENTION_NAME = "ttmark_ragged"


def register_attention() -> None:
    """Makes the attention function known to transformers; doing it twice does no harm."""
    AttentionInterface.register(ATTENTION_NAME, ragged_attention)


def ragged_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    s_aux: torch.Tensor | None = None,
    attention_plan: AttentionPlan | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of one layer.

    Where keys and values differ in size, as in multi-head latent attention, the smaller are filled up with
    zeros: they add nothing to scores, and are cut off from what comes out.

    Args:
        query: [1, heads, rows, dim].
        key: [1, kv_heads, rows, dim].
        value: [1, kv_heads, rows, size].
        s_aux: the sinks of the layer's heads [heads], if it has them.

    Returns [1, rows, heads, size].

    Raises:
        NotImplementedError: the model asks for a mask or a variant (soft capping) of its own, or does not
            pass the plan on to its layers.
    """
    if attention_plan is None:
        raise NotImplementedError("its layers are not told what a pass computes")
    if attention_mask is not None:
        raise NotImplementedError("a mask of the model's own")
    if options.get("softcap") is not None:
        raise NotImplementedError("attention option softcap")
    if not isinstance(module.layer_idx, int):
        raise NotImplementedError("attention module without a layer index")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    size = value.shape[-1]
    if key.shape[-1] != size:
        parts, largest = (query, key, value), max(query.shape[-1], key.shape[-1], size)
        query, key, value = (functional.pad(part, (0, largest - part.shape[-1])) for part in parts)
    out = attend(
        attention_plan,
        module.layer_idx,
        query[0].transpose(0, 1).contiguous(),
        torch.stack((key[0], value[0])).permute(2, 0, 1, 3),
        scale=scale,
        window=sliding_window,
        sinks=None if s_aux is None else s_aux.detach().float(),
    )
    return out.view(1, query.shape[2], query.shape[1], -1)[..., :size], None


_ATTENTION_LAYERS = {"full_attention", "sliding_attention"}
_BATCH_DEPENDENT_ROPE = {"dynamic", "longrope"}
_CHECK_TOKENS = 24
_CHECK_CHUNK = 9
_COMPARED_ROWS = 4
_PACKED_SHARE = 0.25  # of the free memory, which the packed copy of the weights may take
_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.15, torch.float16: 0.05}


def fastest_runner(name: str, folder: Path, settings: EngineSettings) -> tuple[Runner, ModelFacts]:
    """A runner with the dtype and the threads that are fastest, torch being left at these, and what it runs.

    Raises:
        ModelLoadError: an architecture without branchable attention, or logits that differ from the model's.
    """
    config = _checked_config(name, folder)
    options = choices_among(settings)
    alone = options[0].dtype == options[-1].dtype
    chosen, runner = _choose(name, folder, settings, options, lambda each: each if alone else None)
    runner = runner or _checked_runner(name, folder, chosen.dtype, settings)
    torch.set_num_threads(chosen.threads)
    return runner, _facts(runner, config)


def try_each(name: str, folder: Path, settings: EngineSettings) -> Choice:
    """The choice of `fastest_runner`, with the description of a model that runs without transformers.

    Raises:
        ModelLoadError: see `fastest_runner`.
    """
    config = _checked_config(name, folder)

    def seen(runner: Runner) -> tuple[torch.Tensor, dict[str, Any] | None]:
        described, facts = describe(runner.model), asdict(_facts(runner, config))
        model = {"described": described, "kernels": runner.kernels is not None, "weights": runner.weights}
        return _few_logits(runner), {"model": model, "facts": facts} if described else None

    chosen, (logits, plain) = _choose(name, folder, settings, choices_among(settings), seen)
    if plain is not None and _gives_without_transformers(logits, folder, chosen.dtype, plain["model"]):
        chosen = replace(chosen, plain=plain)
    return chosen


def _choose(
    name: str,
    folder: Path,
    settings: EngineSettings,
    options: Sequence[Choice],
    look: Callable[[Runner], Seen],
) -> tuple[Choice, Seen]:
    """The fastest choice, and what `look` gave of its runner; one number format after the other is loaded."""
    measured = []
    for dtype in dict.fromkeys(option.dtype for option in options):
        threads = [option.threads for option in options if option.dtype == dtype]
        runner = _checked_runner(name, folder, dtype, settings)
        seen = look(runner)
        seconds, count = (0.0, threads[0]) if len(options) == 1 else fewest_seconds(runner, threads)
        measured.append((seconds, Choice(dtype, count), seen))
        if runner.weights in BITS:  # nothing is faster, or smaller
            return measured[-1][1], seen
        del runner
        release_free_memory()
    _, chosen, seen = min(measured, key=lambda each: each[0])
    return chosen, seen


def _few_logits(runner: Runner) -> torch.Tensor:
    """Of one number of threads, as others may add up in another order."""
    torch.set_num_threads(1)
    return runner.probe_once(_COMPARED_ROWS)


def _gives_without_transformers(
    logits: torch.Tensor, folder: Path, dtype: str, described: Mapping[str, Any]
) -> bool:
    """Whether a model that is read from its files gives these very logits."""
    try:
        model, acceleration = open_llama(folder, dtype, **described)
        runner = acceleration.runner(model, KvCache(_COMPARED_ROWS))
        return torch.equal(_few_logits(runner), logits)
    except Exception as error:
        log = structlog.get_logger("ttmark.engine")
        log.warning("needs_transformers", folder=str(folder), error=_first_line(error))
        return False


def _facts(runner: Runner, config: Any) -> ModelFacts:
    model, vocab_size = runner.model, int(config.get_text_config().vocab_size)
    ends, start = boundary_tokens(model.generation_config, model.config.get_text_config(), vocab_size)
    longest = int(getattr(config.get_text_config(), "max_position_embeddings", 0) or 2048)
    return ModelFacts(vocab_size, longest, ends, start, runner.cache.bytes_per_token)


def _checked_config(model: str, folder: Path) -> Any:
    try:
        config = AutoConfig.from_pretrained(folder)
    except Exception as error:
        raise ModelLoadError(f"{model}: no usable config.json ({_first_line(error)})") from error
    text = config.get_text_config()
    if config.is_encoder_decoder:
        raise ModelLoadError(f"{model}: {config.model_type} is an encoder-decoder, not a causal model")
    other = sorted(set(getattr(text, "layer_types", None) or ()) - _ATTENTION_LAYERS)
    if other:
        raise ModelLoadError(f"{model}: layers of type {', '.join(other)} have no branchable KV cache")
    for rope in _rope_types(getattr(text, "rope_parameters", None) or {}) & _BATCH_DEPENDENT_ROPE:
        raise ModelLoadError(f"{model}: {rope} rotary embedding depends on the rest of a batch")
    return config


def _rope_types(parameters: dict[str, Any]) -> set[str]:
    nested = [value for value in parameters.values() if isinstance(value, dict)]
    return {str(each.get("rope_type")) for each in [parameters, *nested]}


def _checked_runner(model: str, folder: Path, dtype: str, settings: EngineSettings) -> Runner:
    device, quantization = settings.device, settings.quantization
    loaded = _transformers_module(model, folder, dtype, device)
    expected = _own_logits(model, loaded)
    *faster, plainest = _accelerations(loaded, quantization)
    for acceleration in faster:
        try:
            if acceleration.weights in BITS:
                return _grouped_runner(model, loaded, acceleration, exact=quantization == "auto")
            return _compared_runner(model, loaded, acceleration, expected)
        except NotExact:
            loaded = _transformers_module(model, folder, dtype, device)
        except ModelLoadError as error:
            log = structlog.get_logger("ttmark.engine")
            log.warning(
                "acceleration_unusable", model=model, acceleration=str(acceleration), error=str(error)
            )
            loaded = _transformers_module(model, folder, dtype, device)  # its matrices may be packed by now
    return _compared_runner(model, loaded, plainest, expected)


def _transformers_module(model: str, folder: Path, dtype: str, device: str) -> Any:
    register_attention()
    disable_progress_bar()
    try:
        loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation=ATTENTION_NAME)
        return loaded.to(usable_device(device)).eval()
    except Exception as error:
        raise ModelLoadError(f"{model}: {_first_line(error)}") from error


def _accelerations(model: Any, quantization: str) -> list[Acceleration]:
    """What may be tried with the model, the fastest first; the last one needs nothing but torch."""
    kernels = kernels_for(model) is not None
    forms = ["packed", "plain"] if _can_pack(model) else ["plain"]
    if kernels and quantization == "auto" and _is_of_four_bits(model):
        forms.insert(0, "int4")
    elif quantization in BITS:
        forms.insert(0, quantization)
    fast = [Acceleration(kernels, form) for form in forms if kernels or form != "plain"]
    return [*fast, Acceleration()]


def _is_of_four_bits(model: Any) -> bool:
    """Whether the first matrix of a model loses nothing, so that the others are worth a try."""
    found = find_kernels()
    if found is None or model.dtype != torch.bfloat16 or not FusedLlama.suits(model):
        return False
    weight = model.model.layers[0].self_attn.o_proj.weight.detach()
    return GroupedMatrix.suits(weight) and GroupedMatrix(weight, 4, found).is_exact


def _grouped_runner(name: str, model: Any, acceleration: Acceleration, *, exact: bool) -> Runner:
    """A runner with matrices in groups, compared with transformers over the values that these stand for.

    Raises:
        NotExact: the values are to stay, and would not.
        ModelLoadError: see `_compared_runner`.
    """
    kernels = find_kernels()
    if kernels is None:
        raise ModelLoadError(f"{name}: {acceleration.weights} needs the compiled kernels")
    grouping = Grouping(BITS[acceleration.weights], kernels, exact=exact, kept=True)
    try:
        if FusedLlama.suits(model):
            own = kernels if acceleration.kernels else None
            acceleration = replace(acceleration, fused=FusedLlama(model, matrix=grouping, kernels=own))
        else:
            group_linears(model, grouping, model.get_output_embeddings())
    except ValueError as error:
        if exact:
            raise NotExact from error
        raise _cannot_run(name, error) from error
    runner = _compared_runner(name, model, acceleration, _own_logits(name, model))
    if runner.fused is not None:  # else layers were replaced, and others stay
        grouping.let_go(model)
    return runner


class NotExact(Exception):
    """The values of a model are none of whole numbers in groups."""


@cache
def can_pack(dtype: torch.dtype) -> bool:
    """Whether oneDNN packs matrices of `dtype` here; in bf16 it needs AVX-512 or AVX-NE-CONVERT."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    try:
        Matrix.pack(torch.eye(16, dtype=dtype))(torch.ones(2, 16, dtype=dtype))
    except (RuntimeError, AttributeError):
        return False
    return True


def _can_pack(model: Any) -> bool:
    """Whether oneDNN packs matrices of its dtype; in float32 that is a second copy, which needs memory."""
    if model.device.type != "cpu" or not FusedLlama.suits(model) or not can_pack(model.dtype):
        return False
    size = sum(int(weight.nbytes) for weight in model.parameters())
    return bool(model.dtype != torch.float32 or size <= _PACKED_SHARE * available_memory())


def _check_tokens(model: Any) -> list[int]:
    vocab = int(model.config.get_text_config().vocab_size)
    tokens: list[int] = np.random.default_rng(0).integers(0, vocab, _CHECK_TOKENS).tolist()
    return tokens


@torch.inference_mode()
def _own_logits(name: str, model: Any) -> torch.Tensor:
    """What transformers' own attention gives after a short text [vocab]."""
    try:
        model.set_attn_implementation("eager")
        tokens = torch.tensor([_check_tokens(model)], device=model.device)
        logits: torch.Tensor = model(input_ids=tokens, use_cache=False).logits[0, -1].float()
    except Exception as error:
        raise _cannot_run(name, error) from error
    finally:
        model.set_attn_implementation(ATTENTION_NAME)
    if not torch.isfinite(logits).all():
        raise ModelLoadError(f"{name}: the model's logits are not finite")
    return logits


@torch.inference_mode()
def _compared_runner(name: str, model: Any, acceleration: Acceleration, expected: torch.Tensor) -> Runner:
    """A runner that gives the logits after the short text, which it takes in chunks, commits and probes.

    Raises:
        ModelLoadError: it gives others, or none.
    """
    tokens = _check_tokens(model)
    prompt, last = _CHECK_TOKENS - 3, np.array([tokens[-1:]])
    try:
        runner = acceleration.runner(model, KvCache(2 * _CHECK_TOKENS))
        runner.forward([Append(0, 0, tokens[:_CHECK_CHUNK], is_chunk=True, wants_logits=False)])
        runner.forward(
            [Append(0, _CHECK_CHUNK, tokens[_CHECK_CHUNK:prompt], is_chunk=True, wants_logits=False)]
        )
        runner.forward([Append(0, prompt, tokens[prompt:-1], is_chunk=False, wants_logits=False)])
        ours = runner.forward([Probe(0, _CHECK_TOKENS - 1, last)])[0][0].float()
    except Exception as error:
        raise _cannot_run(name, error) from error
    scale = max(1.0, float(expected.abs().max()))
    # Of what is not a number no comparison holds.
    rounds_as = torch.bfloat16 if acceleration.weights in BITS else model.dtype
    if not float((ours - expected).abs().max()) <= _TOLERANCE.get(rounds_as, 1e-3) * scale:
        raise ModelLoadError(
            f"{name}: {type(model).__name__} attends in a way that the engine does not reproduce"
        )
    return runner


def _cannot_run(name: str, error: Exception) -> ModelLoadError:
    return ModelLoadError(f"{name}: the engine cannot run this architecture ({_first_line(error)})")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
