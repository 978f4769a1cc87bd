"""The worker on a GPU."""

from vllm.v1.worker.gpu_worker import Worker

from ttmark.gen_service.features.vllm.worker.tandem_worker import TandemWorker


class TandemGpuWorker(TandemWorker, Worker):  # type: ignore[misc]
    """vLLM's GPU worker with tandem decoding."""
