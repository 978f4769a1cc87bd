"""Each instance behind a load balancer is replaced under load, told to end and nothing else."""

import shutil
import signal
import time
from pathlib import Path

import httpx
import pytest

from tests.harness.observe.services import Bed, free_port
from tests.stack.client import Client, text_of
from tests.stack.rolling import Balancer, Load, wait_ready

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# HAProxy asks each second, and believes the second refusal.
DELAY_SECONDS = 6


def test_no_request_fails_while_each_instance_gets_sigterm_and_is_replaced(tmp_path: Path) -> None:
    if shutil.which("haproxy") is None:
        pytest.skip("haproxy is missing; it is Debian's package of that name")
    bed = Bed(tmp_path / "bed", settings={"TTMARK_DRAIN_DELAY_SECONDS": str(DELAY_SECONDS)})
    ports = {"gen": free_port(), "detect": free_port()}
    urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
    client = Client(urls["gen"], lambda: urls["detect"], bed.setup.token, bed.setup.model_id)
    try:
        started = [f"{name}-{number}" for name in ports for number in range(2)]
        for instance in started:
            bed.start(instance)
        for instance in started:
            bed.wait_until_ready(instance)
        with Balancer(tmp_path, ports) as balancer:
            places = {name: [bed.ports[f"{name}-{number}"] for number in range(2)] for name in ports}
            balancer.start({name: [f"127.0.0.1:{port}" for port in of] for name, of in places.items()})
            for port in ports.values():
                wait_ready("127.0.0.1", port)
            with Load(client, text_of(client.complete(300))) as load:
                codes = [replace(bed, balancer, name, number) for name in ports for number in range(2)]
                time.sleep(3)
    finally:
        for process in bed.processes.values():
            process.terminate()
        for process in bed.processes.values():
            process.wait(60)
        client.close()
    print(load.answered, load.unsent)
    assert load.failed == []
    assert codes == [0, 0, 0, 0]
    assert min(load.answered.values()) > 20


def replace(bed: Bed, balancer: Balancer, name: str, number: int) -> int:
    """Starts one instance more, and ends one; the exit code of that."""
    old, new, free = f"{name}-{number}", f"{name}-{number + 2}", 2 if number == 0 else 0
    bed.start(new)
    bed.wait_until_ready(new)
    balancer.add(name, free, "127.0.0.1", bed.ports[new])
    time.sleep(3)
    bed.processes[old].send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert httpx.get(f"{bed.url(old)}/readyz", timeout=30).json()["checks"]["staying"] is False
    code = bed.stop(old)
    balancer.tell(f"set server {name}/s{number} state maint")
    return code
