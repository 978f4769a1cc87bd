"""`python -m ttmark.gen_service.engine.model.speed_trial`: how a model runs fastest here, by its own process.

A line of JSON on standard input names the model's folder, the engine's settings and the most threads; one on
standard output is the `Choice`, or the error. It imports transformers and holds the model in each number
format, one after the other; the process that serves does neither.
"""

import os
import sys
import threading
from dataclasses import asdict
from pathlib import Path

import orjson
import torch

from ttmark.gen_service.engine.errors import ModelLoadError
from ttmark.gen_service.engine.model.transformers_model import try_each
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.observability.logging import configure_logging


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


def main() -> None:
    asked = orjson.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, name="ttmark-parent", daemon=True).start()
    configure_logging("warning")
    settings = EngineSettings(**asked["settings"])
    torch.set_num_threads(asked["threads"])
    try:
        answer = asdict(try_each(asked["name"], Path(asked["folder"]), settings))
    except ModelLoadError as error:
        answer = {"error": str(error)}
    sys.stdout.buffer.write(b"\n" + orjson.dumps(answer))


if __name__ == "__main__":
    main()
