"""From our settings to vLLM's configuration, and the refusals of what tandem decoding cannot run on."""

from pathlib import Path
from typing import Any

import vllm
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.platforms import current_platform

from ttmark.gen_service.engine.errors import ModelLoadError
from ttmark.gen_service.features.vllm.additional_config import Additional, Lifeline
from ttmark.gen_service.features.vllm.vllm_settings import VERSIONS, VllmSettings, scratch_blocks
from ttmark.shared.watermark.schemes.watermark import MAX_BLOCK_SIZE

SPARE_TOKENS = MAX_BLOCK_SIZE + 1
"""Tokens at the end of vLLM's context that no request reaches: there it would replace drafts."""

# By its short name vLLM takes a process of its own for the worker on a CPU, and each step crosses over.
_ONE_PROCESS = "vllm.v1.executor.uniproc_executor.UniProcExecutor"
_HOME = "ttmark.gen_service.features.vllm.worker"
_OURS = frozenset(
    {
        "additional_config",
        "async_scheduling",
        "dtype",
        "enable_log_requests",
        "enable_prefix_caching",
        "generation_config",
        "max_num_seqs",
        "model",
        "override_generation_config",
        "scheduling_policy",
        "served_model_name",
        "speculative_config",
        "worker_cls",
    }
)


def engine_config(folder: Path, settings: VllmSettings) -> Any:
    """vLLM's configuration of an engine.

    Raises:
        ModelLoadError: with one line: another vLLM, an argument that is ours or nobody's, or something that
            tandem decoding cannot run on.
    """
    if vllm.__version__.split("+")[0] not in VERSIONS:
        known = " or ".join(VERSIONS)
        raise ModelLoadError(f"vLLM {vllm.__version__} is installed; this release runs on {known}")
    arguments = dict(settings.arguments)
    if taken := sorted(_OURS & arguments.keys()):
        raise ModelLoadError(f"vLLM's {', '.join(taken)} cannot be set: TTMark sets it")
    if arguments.get("enable_lora"):
        raise ModelLoadError("LoRA adapters are not supported on vLLM")
    cpu = current_platform.is_cpu()
    if cpu:  # compiled for one shape after the other, a probe takes longer than it saves
        arguments.setdefault("enforce_eager", True)
        arguments.setdefault("block_size", 32)  # instead of 128: each branch copies a block
        if not {"tensor_parallel_size", "pipeline_parallel_size"} & arguments.keys():
            arguments.setdefault("distributed_executor_backend", _ONE_PROCESS)
    try:
        chosen = AsyncEngineArgs(
            model=str(folder),
            dtype=settings.dtype,
            max_num_seqs=settings.max_sequences,
            enable_prefix_caching=settings.prefix_cache,
            scheduling_policy="priority",
            async_scheduling=False,
            enable_log_requests=False,
            worker_cls=f"{_HOME}.cpu_worker.TandemCpuWorker"
            if cpu
            else f"{_HOME}.gpu_worker.TandemGpuWorker",
            speculative_config={
                "method": "custom_class",
                "model": f"{_HOME}.proposer.TandemProposer",
                "num_speculative_tokens": MAX_BLOCK_SIZE - 1,
            },
            additional_config=Additional(scratch_blocks(settings), Lifeline.of_this_process()),
            generation_config="vllm",  # no sampling of vLLM's own: a ticket has all of it
            **{"skip_tokenizer_init": True} | arguments,
        )
        config = chosen.create_engine_config()
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelLoadError(f"vLLM refuses {folder.name}: {' '.join(lines)[:500]}") from error
    for unsupported, what in _unsupported(config):
        if unsupported:
            raise ModelLoadError(f"{folder.name}: {what} not supported on vLLM")
    return config


def _unsupported(config: Any) -> list[tuple[bool, str]]:
    model, parallel = config.model_config, config.parallel_config
    return [
        (parallel.pipeline_parallel_size > 1, "pipeline parallelism is"),
        (parallel.data_parallel_size > 1, "data parallelism is"),
        (parallel.decode_context_parallel_size > 1, "context parallelism is"),
        (parallel.prefill_context_parallel_size > 1, "context parallelism is"),
        (config.lora_config is not None, "LoRA adapters are"),
        (config.kv_transfer_config is not None, "KV transfer is"),
        (model.is_hybrid or model.is_attention_free, "linear-attention or state-space layers are"),
        (model.is_encoder_decoder, "an encoder-decoder is"),
        (model.uses_mrope, "positions in several dimensions are"),
        # vLLM's own forward gives other logits there than transformers does, found with DeepSeek V3 in fp32.
        (model.use_mla and current_platform.is_cpu(), "latent attention (DeepSeek) on a CPU is"),
        (config.use_v2_model_runner, "vLLM's second model runner is"),
    ]
