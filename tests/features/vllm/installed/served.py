"""The generation service over vLLM as a process, with all that belongs to it."""

import multiprocessing
import os
import signal
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import psutil

from tests.harness.observe.forked_services import ForkedService
from ttmark.services.local.provision import LocalSetup

if find_spec("vllm"):
    # Of what every start would import again, the half that is in the service's own process.
    multiprocessing.get_context("forkserver").set_forkserver_preload(
        [
            "ttmark.services.composition.generation_service",
            "ttmark.services.cli.serve",
            "ttmark.gen_service.features.vllm.vllm_engine",
        ]
    )
ENGINE = "block_size: 32\nmax_model_len: 512\nmax_num_batched_tokens: 512\nnum_gpu_blocks_override: 60\n"


def command_line(process: psutil.Process) -> str:
    """Of a process; one that has ended is called as a helper is."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return "resource_tracker"


class VllmService(ForkedService):
    """A service that is started at once, in an empty folder, with further lines of its TTMARK_ENGINE_FILE."""

    start_seconds = 600.0

    def __init__(
        self, setup: LocalSetup, folder: Path, engine: str = "", settings: Mapping[str, str] | None = None
    ) -> None:
        self._temporary = folder / "tmp"
        self._temporary.mkdir(parents=True)
        (folder / "engine.yaml").write_text(ENGINE + engine)
        self._all: list[psutil.Process] = []
        self._shared: set[str] = set()
        super().__init__(
            setup,
            folder / "gen.log",
            {
                "TTMARK_ENGINE": "vllm",
                "TTMARK_ENGINE_FILE": str(folder / "engine.yaml"),
                "TTMARK_MAX_CONCURRENCY": "8",
                "TTMARK_PLAYGROUND": "false",
                "TMPDIR": str(self._temporary),
                "VLLM_CPU_KVCACHE_SPACE": "1",
                "OMP_NUM_THREADS": "1",
                **(settings or {}),
            },
        )

    def look(self) -> None:
        """Takes note of the processes and the shared memory that it has now."""
        own = psutil.Process(self.pid)
        self._all = [own, *own.children(recursive=True)]
        for each in self._all:
            try:
                maps = [entry.path for entry in each.memory_maps()]
            except (psutil.Error, OSError):
                if each.is_running() and each.status() != psutil.STATUS_ZOMBIE:
                    raise
                continue  # a helper that ended while it was looked at
            self._shared |= {path for path in maps if path.startswith("/dev/shm/")}

    @property
    def cores(self) -> list[psutil.Process]:
        """Processes of vLLM's own, the engine's first; `look` comes before."""
        return [each for each in self._all[1:] if "resource_tracker" not in command_line(each)]

    def interrupt_all(self) -> None:
        """What Ctrl-C in a terminal does."""
        for each in self._all:
            os.kill(each.pid, signal.SIGINT)

    def left(self) -> list[str]:
        """What is still there of what was seen, after the end."""
        alive = psutil.wait_procs(self._all, timeout=20)[1]
        shared = [name for name in self._shared if Path(name.removesuffix(" (deleted)")).exists()]
        return [*map(str, alive), *shared, *(str(each) for each in self._temporary.rglob("*"))]
