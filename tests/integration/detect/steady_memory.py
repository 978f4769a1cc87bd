"""What a detection service holds in memory while it works steadily: does it reach a plateau?

    python -m tests.integration.detect.steady_memory [--minutes 30] [--rate 10]

Words of the human texts, in a random order, so that no passage comes twice: 300 of them in a request; in
every 50th 15,000, and in every 500th one of `tests/harness/worst_bodies.py`. Prints one JSON object for each
half minute.
"""

import argparse
import json
import random
import tempfile
import time
from itertools import cycle
from pathlib import Path

import httpx

from tests.harness.worst_bodies import WORST_BODIES
from tests.integration.detect.worst_bodies import measured_service
from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.demo_model import HUMAN_TEXTS_PATH

_SIZE = 8 * 2**20


def main() -> None:
    """Starts, sends, prints."""
    parser = argparse.ArgumentParser(description="Memory of the detection service under a steady load.")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=float, default=10)
    options = parser.parse_args()
    words = " ".join(read_human_texts(HUMAN_TEXTS_PATH)).split(" ")
    chance, worst = random.Random(1), cycle(WORST_BODIES.values())
    with tempfile.TemporaryDirectory() as name, measured_service(Path(name)) as service:
        began, sent, printed = time.monotonic(), 0, -1
        headers = {"Authorization": f"Bearer {service.tokens['small']}", "Content-Type": "application/json"}
        client = httpx.Client(base_url=f"http://127.0.0.1:{service.port}", headers=headers, timeout=120)
        statuses: dict[int, int] = {}
        while (now := time.monotonic() - began) < 60 * options.minutes:
            if int(now / 30) > printed:
                printed = int(now / 30)
                resident = round(service.process.memory_info().rss / 2**20, 1)
                threads = service.process.num_threads()
                row = {"minute": printed / 2, "resident_mib": resident, "threads": threads, **statuses}
                print(json.dumps(row), flush=True)
            sent += 1
            if sent % 500 == 0:
                body = next(worst)(_SIZE)
            else:
                text = " ".join(chance.choices(words, k=15_000 if sent % 50 == 0 else 300))
                body = json.dumps({"inputs": [{"text": text}]}).encode()
            status = client.post("/v1/detect", content=body).status_code
            statuses[status] = statuses.get(status, 0) + 1
            time.sleep(max(0.0, began + sent / options.rate - time.monotonic()))


if __name__ == "__main__":
    main()
