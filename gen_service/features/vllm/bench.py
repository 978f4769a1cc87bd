"""vLLM as benchmarks start it."""

from ttmark.gen_service.api.features import RunningEngine
from ttmark.gen_service.features.vllm.service import prepare_for_vllm
from ttmark.gen_service.features.vllm.vllm_settings import VllmSettings

_MEMORY_SHARE = 0.3
"""Of the machine's memory that vLLM asks for at its start."""


def load_for_bench(folder: str, dtype: str, sequences: int, context: int) -> RunningEngine:
    """vLLM with the model of a folder in it, for so many sequences of a context's tokens at most."""
    prepare_for_vllm(VLLM_CPU_KVCACHE_SPACE="1")
    from ttmark.gen_service.features.vllm.vllm_engine import VllmEngine

    arguments = {"max_model_len": context, "gpu_memory_utilization": _MEMORY_SHARE}
    settings = VllmSettings(dtype=dtype, max_sequences=sequences, prefix_cache=False, arguments=arguments)
    return VllmEngine.load(folder, settings)
