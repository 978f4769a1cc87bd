"""A process with a lifeline ends with the one that it hangs on."""

import subprocess
import sys

HANGING = """
import sys, time
from ttmark.gen_service.vllm_engine.lifeline import end_with
end_with(int(sys.argv[1]))
print("hanging", flush=True)
time.sleep(600)
"""


def test_a_process_ends_when_the_other_is_killed() -> None:
    service = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    hanging = subprocess.Popen(
        [sys.executable, "-c", HANGING, str(service.pid)], stdout=subprocess.PIPE, text=True
    )
    assert hanging.stdout is not None
    assert hanging.stdout.readline() == "hanging\n"
    assert hanging.poll() is None
    service.kill()
    service.wait()
    assert hanging.wait(60) == 1
    hanging.stdout.close()
