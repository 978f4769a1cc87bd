"""Ends a process when another one has ended: vLLM's engine would outlive a service that was killed."""

import os
import select
import threading


def end_with(service: int) -> None:
    """Ends this process, at once and without ceremony, when the process `service` is no more."""
    watched = os.pidfd_open(service)

    def watch() -> None:
        select.select([watched], [], [])
        os._exit(1)

    threading.Thread(target=watch, name="ttmark-lifeline", daemon=True).start()
