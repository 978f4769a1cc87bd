"""Rolling restart as docs/operations/upgrade.md describes it, while clients retry as documented."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.harness.observe.balancer import Balancer
from tests.harness.observe.bed import Bed, free_port
from ttmark.shared.client import AnswerLost, Client, ClientError
from ttmark.shared.schemas.detection import DirectRequest, Document

QUIET_SECONDS = 3.0
RETRIES = 20
PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 0.05
REPEAT_SECONDS = 0.5
_WORDS = "The quick brown fox jumps over the lazy dog and reads the file that the command has written. " * 10


@dataclass
class Outcome:
    """What clients saw while every instance was replaced.

    Attributes:
        answered: completed requests by service.
        failures: what a client was told, retries used up.
        exit_codes: of the instances that were stopped.
        seconds: how long replacing took.
    """

    answered: dict[str, int] = field(default_factory=lambda: {"gen": 0, "detect": 0})
    failures: list[str] = field(default_factory=list)
    exit_codes: list[int] = field(default_factory=list)
    seconds: float = 0.0


def rolling_restart(bed: Bed, *, clients: int) -> Outcome:
    """Replaces all instances of detection, then of generation, while `clients` clients use each."""
    outcome = Outcome()
    names = {"detect": ["detect", "detect-1"], "gen": ["gen", "gen-1"]}
    for service in names:
        bed.start(f"{service}-1")
        bed.wait_until_ready(f"{service}-1")
    balancers = {
        service: Balancer(free_port(), [bed.ports[name] for name in instances])
        for service, instances in names.items()
    }
    stop = threading.Event()
    with balancers["gen"], balancers["detect"]:
        threads = [
            threading.Thread(target=_client, args=(bed, service, balancers[service].url, stop, outcome))
            for service in names
            for _ in range(clients)
        ]
        for thread in threads:
            thread.start()
        started = time.monotonic()
        for service, instances in names.items():
            for number, old in enumerate(instances):
                _replace(bed, balancers[service], old, f"{service}-new-{number}", outcome)
        outcome.seconds = time.monotonic() - started
        time.sleep(QUIET_SECONDS)
        stop.set()
        for thread in threads:
            thread.join(150)
    return outcome


def _replace(bed: Bed, balancer: Balancer, old: str, new: str, outcome: Outcome) -> None:
    bed.start(new)
    bed.wait_until_ready(new)
    balancer.backends.append(bed.ports[new])
    balancer.backends.remove(bed.ports[old])
    time.sleep(QUIET_SECONDS)
    outcome.exit_codes.append(bed.stop(old))


def _client(bed: Bed, service: str, url: str, stop: threading.Event, outcome: Outcome) -> None:
    with Client(url, bed.setup.token, retries=RETRIES, patience=PATIENCE_SECONDS) as client:
        request = _completion(client, bed) if service == "gen" else _detection(client)
        while not stop.is_set():
            try:
                _repeated(request)
                outcome.answered[service] += 1
            except ClientError as error:
                outcome.failures.append(f"{service}: {error}")
            stop.wait(PAUSE_SECONDS)


def _repeated(request: Callable[[], object]) -> None:
    """Asks again when an answer was lost, as whoever minds no second charge does."""
    for _ in range(RETRIES):
        try:
            request()
            return
        except AnswerLost:
            time.sleep(REPEAT_SECONDS)
    request()


def _completion(client: Client, bed: Bed) -> Callable[[], object]:
    body = {"model": bed.setup.model_id, "prompt": "The command reads", "max_tokens": 16}
    return lambda: client.complete(body)


def _detection(client: Client) -> Callable[[], object]:
    request = DirectRequest(inputs=[Document(text=_WORDS)])
    return lambda: client.detect(request)
