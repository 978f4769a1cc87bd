"""Every part of vLLM that `gen_service/features/vllm` touches; an upgrade begins here.

Of each file that says how vLLM's own marks are drawn and found the SHA-256 that it has in 0.32.0.
"""

from collections.abc import Mapping

_RUNNER = "vllm.v1.worker.gpu_model_runner.GPUModelRunner"
_WORKER = "vllm.v1.worker.gpu_worker.Worker"
_CPU_WORKER = "vllm.v1.worker.cpu_worker.CPUWorker"
_LLM = "vllm.v1.engine.async_llm.AsyncLLM"

TOUCHED: Mapping[str, tuple[str, ...]] = {
    # API side
    f"{_LLM}.from_vllm_config": ("vllm_config", "stat_loggers", "enable_log_requests", "disable_log_stats"),
    f"{_LLM}.generate": ("prompt", "sampling_params", "request_id", "priority"),
    f"{_LLM}.collective_rpc": ("method", "args"),
    f"{_LLM}.reset_prefix_cache": (),
    f"{_LLM}.shutdown": (),
    f"{_LLM}.errored": (),
    "vllm.engine.arg_utils.AsyncEngineArgs": (
        "model",
        "dtype",
        "max_num_seqs",
        "worker_cls",
        "speculative_config",
        "additional_config",
        "async_scheduling",
        "block_size",
        "enable_prefix_caching",
        "scheduling_policy",
        "skip_tokenizer_init",
        "generation_config",
    ),
    "vllm.engine.arg_utils.AsyncEngineArgs.create_engine_config": (),
    "vllm.sampling_params.SamplingParams": (
        "max_tokens",
        "temperature",
        "ignore_eos",
        "detokenize",
        "output_kind",
        "extra_args",
        "skip_reading_prefix_cache",
    ),
    "vllm.sampling_params.RequestOutputKind.FINAL_ONLY": (),
    "vllm.v1.engine.exceptions.EngineDeadError": (),
    "vllm.v1.metrics.loggers.StatLoggerBase.record": ("scheduler_stats", "iteration_stats"),
    "vllm.config.ModelConfig.is_hybrid": (),
    "vllm.config.ModelConfig.is_attention_free": (),
    "vllm.config.ModelConfig.is_encoder_decoder": (),
    "vllm.config.ModelConfig.use_mla": (),
    "vllm.config.ModelConfig.uses_mrope": (),
    # Worker
    f"{_WORKER}.init_device": (),
    f"{_WORKER}.determine_available_memory": (),
    f"{_WORKER}.get_kv_cache_spec": (),
    f"{_WORKER}.initialize_from_config": ("kv_cache_config",),
    f"{_CPU_WORKER}.init_device": (),
    f"{_CPU_WORKER}.determine_available_memory": (),
    "vllm.v1.kv_cache_interface.FullAttentionSpec.page_size_bytes": (),
    "vllm.v1.kv_cache_interface.SlidingWindowSpec": (),
    "vllm.v1.kv_cache_interface.MLAAttentionSpec": (),
    "vllm.v1.kv_cache_interface.KVCacheTensor": ("size", "layers", "layer_stride", "block_stride", "offset"),
    "vllm.v1.kv_cache_interface.KVCacheConfig": ("num_blocks", "kv_cache_tensors", "kv_cache_groups"),
    # Runner
    f"{_RUNNER}.execute_model": ("scheduler_output",),
    f"{_RUNNER}.sample_tokens": ("grammar_output",),
    f"{_RUNNER}._update_states": ("scheduler_output",),
    f"{_RUNNER}._sample": ("logits", "spec_decode_metadata"),
    f"{_RUNNER}._get_prompt_logprobs_dict": ("hidden_states", "num_scheduled_tokens"),
    "vllm.v1.core.sched.output.SchedulerOutput": (
        "scheduled_new_reqs",
        "num_scheduled_tokens",
        "total_num_scheduled_tokens",
        "scheduled_spec_decode_tokens",
        "finished_req_ids",
    ),
    "vllm.v1.worker.gpu_input_batch.CachedRequestState": ("num_computed_tokens", "block_ids"),
    "vllm.v1.worker.gpu_input_batch.InputBatch.update_req_spec_token_ids": (
        "request",
        "scheduled_spec_tokens",
    ),
    "vllm.v1.core.sched.output.NewRequestData": ("req_id", "sampling_params", "num_computed_tokens"),
    "vllm.v1.spec_decode.metadata.SpecDecodeMetadata": ("draft_token_ids", "num_draft_tokens"),
    "vllm.v1.spec_decode.custom_class_proposer.create_custom_proposer": ("vllm_config",),
    "vllm.v1.outputs.SamplerOutput": ("sampled_token_ids", "logprobs_tensors"),
    # Probe
    "vllm.v1.attention.backend.CommonAttentionMetadata": (
        "query_start_loc",
        "query_start_loc_cpu",
        "seq_lens",
        "num_reqs",
        "num_actual_tokens",
        "max_query_len",
        "max_seq_len",
        "block_table_tensor",
        "slot_mapping",
        "causal",
        "positions",
        "is_prefilling",
        "seq_lens_cpu_upper_bound",
    ),
    "vllm.v1.attention.backend.AttentionMetadataBuilder.build": ("common_prefix_len", "common_attn_metadata"),
    "vllm.v1.worker.utils.AttentionGroup.get_metadata_builder": ("ubatch_id",),
    "vllm.v1.worker.block_table.BlockTable": ("block_size",),
    "vllm.forward_context.set_forward_context": (
        "attn_metadata",
        "vllm_config",
        "num_tokens",
        "slot_mapping",
    ),
    "vllm.distributed.parallel_state.get_tp_group": (),
}

RUNNER_ATTRIBUTES = (
    "attn_groups",
    "compilation_config",
    "device",
    "discard_request_mask",
    "drafter",
    "input_batch",
    "kv_cache_config",
    "model",
    "query_start_loc",
    "requests",
    "vllm_config",
)

WATERMARK_FILES = {
    "config/watermarking.py": "ded04c98473d23eeadfafbe791067f249758972450860140750e7f4420bbd4ca",
    "v1/watermarking/detector.py": "e1884d21ceca306502d89d9ad41d11c2fac0a9a2d8d1efe27d632cb66bbfe41c",
    "v1/watermarking/prfs/base.py": "1228cc2d7245c4df4e0ef13b922655f5c22d659f6839f29c02fc43ed909c2072",
    "v1/watermarking/prfs/philox.py": "9468a4bb045008d4507ae5757da1fdcccd2730b9328ebf8ff909d89109bc8620",
}
