"""The worker on a CPU; importing it binds the process to vLLM's CPU platform."""

from vllm.v1.worker.cpu_worker import CPUWorker

from ttmark.gen_service.features.vllm.worker.tandem_worker import TandemWorker


class TandemCpuWorker(TandemWorker, CPUWorker):  # type: ignore[misc]
    """vLLM's CPU worker with tandem decoding."""
