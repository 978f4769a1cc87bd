"""Loads a transformers model, refuses what the engine cannot serve, and checks what it computes.

Its layers call our attention, which is registered with `AttentionInterface`; the plan of the pass comes
through the model as a keyword.
"""

from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import structlog
import torch
from torch.nn import functional
from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from ttmark.gen_service.engine.attention import AttentionPlan, KvCache, attend
from ttmark.gen_service.engine.autotune import Choice, ChoiceFile, choice_key, fastest
from ttmark.gen_service.engine.errors import ModelLoadError
from ttmark.gen_service.engine.llama import FusedLlama, can_pack
from ttmark.gen_service.engine.memory import available_memory
from ttmark.gen_service.engine.native import Kernels, find_kernels
from ttmark.gen_service.engine.ragged_batch import Append, Probe
from ttmark.gen_service.engine.runner import Runner
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.gen_service.hub import NotOnHub, hub_folder
from ttmark.shared.tokenization import TextTokenizer, TokenizerMissing

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
_PACKED_SHARE = 0.25  # of the free memory, which the packed copy of the weights may take
_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.15, torch.float16: 0.05}


@dataclass(frozen=True, slots=True)
class Acceleration:
    """What makes a runner fast.

    Attributes:
        kernels: the compiled ones attend for commits and probes, and compute what is small.
        packed: matrices are packed for oneDNN.
        fused: the model's matrices as an earlier runner has them, so that they are not made again.
    """

    kernels: bool = False
    packed: bool = False
    fused: FusedLlama | None = field(default=None, compare=False, repr=False)

    def runner(self, model: Any, cache: KvCache, *, reproducible: bool = True) -> Runner:
        return Runner(
            model,
            cache,
            reproducible=reproducible,
            kernels=_kernels_for(model) if self.kernels else None,
            packed=self.packed,
            fused=self.fused,
        )


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready to run, and what requests need to know of it.

    Attributes:
        acceleration: with which the engine was seen to compute what transformers does.
    """

    name: str
    model: Any
    tokenizer: TextTokenizer
    context_length: int
    vocab_size: int
    eos_token_ids: tuple[int, ...]
    start_token_id: int | None
    bytes_per_token: int
    acceleration: Acceleration = Acceleration()


def load_model(model: str, settings: EngineSettings) -> LoadedModel:
    """Loads a folder, or a hub id from the local cache or else the hub.

    Raises:
        ModelLoadError: unknown model, no tokenizer, an architecture without branchable attention, or logits
            that differ from the model's own.
    """
    try:
        folder = Path(model) if Path(model).is_dir() else hub_folder(model)
    except NotOnHub as error:
        raise ModelLoadError(str(error)) from error
    try:
        tokenizer = TextTokenizer.load(folder)
    except TokenizerMissing as error:
        raise ModelLoadError(f"{model}: {error}") from error
    config = _checked_config(model, folder)
    text = config.get_text_config()
    runner = _fastest_runner(model, folder, settings)
    loaded, vocab_size = runner.model, int(text.vocab_size)
    ends, start = boundary_tokens(loaded.generation_config, loaded.config.get_text_config(), vocab_size)
    longest = int(getattr(text, "max_position_embeddings", 0) or 2048)
    return LoadedModel(
        name=settings.model_id or (Path(model).resolve().name if Path(model).is_dir() else model),
        model=loaded,
        tokenizer=tokenizer,
        context_length=min(longest, settings.context_length or longest),
        vocab_size=vocab_size,
        eos_token_ids=ends,
        start_token_id=start,
        bytes_per_token=runner.cache.bytes_per_token,
        acceleration=Acceleration(runner.kernels is not None, runner.packed, runner.fused),
    )


def _fastest_runner(model: str, folder: Path, settings: EngineSettings) -> Runner:
    """The runner with the dtype and the threads that are fastest: as measured here before, or else now."""
    options = [Choice(*each) for each in product(_dtypes(settings), _thread_counts(settings))]
    file = ChoiceFile(settings.choices if len(options) > 1 else None)
    key = choice_key((folder / "config.json").read_bytes(), options)
    known = file.find(key, options)
    chosen = options if known is None else [known]
    dtypes = dict.fromkeys(option.dtype for option in chosen)
    runners = {dtype: _checked_runner(model, folder, dtype, settings.device) for dtype in dtypes}
    runner = fastest(runners.values(), dict.fromkeys(option.threads for option in chosen))
    if known is None:
        (dtype,) = (name for name, each in runners.items() if each is runner)
        file.keep(key, Choice(dtype, torch.get_num_threads()))
    return runner


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


def _dtypes(settings: EngineSettings) -> tuple[str, ...]:
    if settings.dtype == "auto":
        return ("float32", "bfloat16") if _device(settings.device).type == "cpu" else ("auto",)
    if not isinstance(getattr(torch, settings.dtype, None), torch.dtype):
        raise ModelLoadError(f"unknown dtype {settings.dtype!r}")
    return (settings.dtype,)


def _thread_counts(settings: EngineSettings) -> tuple[int, ...]:
    """The numbers of threads to choose from; torch's own is that of the cores, or `OMP_NUM_THREADS`."""
    if settings.threads == "auto":
        return tuple(sorted({1, torch.get_num_threads()}))
    return (settings.threads or torch.get_num_threads(),)


def _checked_runner(model: str, folder: Path, dtype: str, device: str) -> Runner:
    register_attention()
    disable_progress_bar()
    try:
        loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation=ATTENTION_NAME)
        loaded = loaded.to(_device(device)).eval()
    except Exception as error:
        raise ModelLoadError(f"{model}: {_first_line(error)}") from error
    *faster, plainest = _accelerations(loaded)
    for acceleration in faster:
        try:
            return _compared_runner(model, loaded, acceleration)
        except ModelLoadError as error:
            log = structlog.get_logger("ttmark.engine")
            log.warning(
                "acceleration_unusable", model=model, acceleration=str(acceleration), error=str(error)
            )
    return _compared_runner(model, loaded, plainest)


def _accelerations(model: Any) -> list[Acceleration]:
    """What may be tried with the model, the fastest first; the last one needs nothing but torch."""
    kernels = _kernels_for(model) is not None
    pack = [True, False] if _can_pack(model) else [False]
    return [*(Acceleration(kernels, packed) for packed in pack if kernels or packed), Acceleration()]


def _kernels_for(model: Any) -> Kernels | None:
    """The compiled kernels, for a model on a CPU whose heads they attend for."""
    size = _head_size(model.config.get_text_config())
    return find_kernels() if model.device.type == "cpu" and Kernels.suit(model.dtype, size) else None


def _head_size(text: Any) -> int:
    """Numbers of a head; with latent attention the larger of its keys and values."""
    latent = [getattr(text, name, None) or 0 for name in ("qk_head_dim", "v_head_dim")]
    size: int | None = max(latent) or getattr(text, "head_dim", None)
    return size or int(text.hidden_size) // int(text.num_attention_heads)


def _can_pack(model: Any) -> bool:
    """Whether oneDNN packs matrices of its dtype, and there is memory for a second copy of its weights."""
    size = sum(weight.nbytes for weight in model.parameters())
    return (
        model.device.type == "cpu"
        and FusedLlama.suits(model)
        and can_pack(model.dtype)
        and size <= _PACKED_SHARE * available_memory()
    )


def _compared_runner(name: str, model: Any, acceleration: Acceleration) -> Runner:
    try:
        runner = acceleration.runner(model, KvCache(2 * _CHECK_TOKENS))
    except Exception as error:
        raise ModelLoadError(f"{name}: {_first_line(error)}") from error
    _compare_with_transformers(name, runner)
    return runner


def _device(name: str) -> torch.device:
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


@torch.inference_mode()
def _compare_with_transformers(name: str, runner: Runner) -> None:
    """Computes a short text in chunks, commits and probes, and once more by transformers' own attention."""
    model = runner.model
    vocab = int(model.config.get_text_config().vocab_size)
    tokens = np.random.default_rng(0).integers(0, vocab, _CHECK_TOKENS).tolist()
    prompt, last = _CHECK_TOKENS - 3, np.array([tokens[-1:]])
    try:
        runner.forward([Append(0, 0, tokens[:_CHECK_CHUNK], is_chunk=True, wants_logits=False)])
        runner.forward(
            [Append(0, _CHECK_CHUNK, tokens[_CHECK_CHUNK:prompt], is_chunk=True, wants_logits=False)]
        )
        runner.forward([Append(0, prompt, tokens[prompt:-1], is_chunk=False, wants_logits=False)])
        ours = runner.forward([Probe(0, _CHECK_TOKENS - 1, last)])[0][0].float()
        model.set_attn_implementation("eager")
        theirs = model(input_ids=torch.tensor([tokens], device=runner.device), use_cache=False)
        expected = theirs.logits[0, -1].float()
    except Exception as error:
        raise ModelLoadError(
            f"{name}: the engine cannot run this architecture ({_first_line(error)})"
        ) from error
    finally:
        model.set_attn_implementation(ATTENTION_NAME)
    if not torch.isfinite(expected).all():
        raise ModelLoadError(f"{name}: the model's logits are not finite")
    scale = max(1.0, float(expected.abs().max()))
    if float((ours - expected).abs().max()) > _TOLERANCE.get(model.dtype, 1e-3) * scale:
        raise ModelLoadError(
            f"{name}: {type(model).__name__} attends in a way that the engine does not reproduce"
        )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
