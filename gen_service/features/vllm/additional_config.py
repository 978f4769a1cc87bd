"""Our part of vLLM's configuration, which every worker gets with it, and ends by."""

import os
import select
import threading
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Lifeline:
    """A process, on whose life that of others hangs.

    Attributes:
        numbered_by: what gave it the number: a boot of a machine, and one of its PID namespaces.
    """

    process: int
    numbered_by: str

    @classmethod
    def of_this_process(cls) -> "Lifeline":
        """For processes that are to end with this one."""
        return cls(os.getpid(), _numbered_by())

    def hold(self) -> None:
        """Ends this process, at once and without ceremony, when the other is no more.

        Does nothing in another container or on another machine, where Ray ends what has lost its driver.
        """
        if self.numbered_by != _numbered_by():
            return
        try:
            watched = os.pidfd_open(self.process)
        except ProcessLookupError:
            os._exit(1)

        def watch() -> None:
            select.select([watched], [], [])
            os._exit(1)

        threading.Thread(target=watch, name="ttmark-lifeline", daemon=True).start()


def _numbered_by() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


@dataclass(frozen=True, slots=True)
class Additional:
    """vLLM's `additional_config`.

    Attributes:
        scratch_blocks: of each KV group.
        service: what the workers end with.
    """

    scratch_blocks: int
    service: Lifeline

    def compute_hash(self) -> str:
        """By which vLLM finds the kernels that an earlier process compiled."""
        return str(self.scratch_blocks)
