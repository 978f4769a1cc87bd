"""`python -m ttmark.services.cli.child`: the `ttmark` command, which ends with the process that started it.

Its standard input is a pipe to which that process holds the only other end, and nothing is ever written.
"""

import os
import signal
import threading
import time

from ttmark.services.cli.main import app
from ttmark.services.local.processes import STOP_SECONDS


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, name="ttmark-parent", daemon=True).start()
    app()
