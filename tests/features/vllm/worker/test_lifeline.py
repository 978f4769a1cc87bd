"""A process with a lifeline ends with the one that it hangs on."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from ttmark.gen_service.features.vllm.additional_config import Lifeline

HANGING = """
import sys, time
from ttmark.gen_service.features.vllm.additional_config import Lifeline
Lifeline(int(sys.argv[1]), sys.argv[2]).hold()
print("hanging", flush=True)
time.sleep(600)
"""
HERE = Lifeline.of_this_process().numbered_by


def start_hanging(process: int, numbered_by: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", HANGING, str(process), numbered_by]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def service() -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], text=True) as running:
        yield running
        running.kill()


def test_a_process_ends_when_the_other_is_killed(service: "subprocess.Popen[str]") -> None:
    with start_hanging(service.pid, HERE) as hanging:
        assert hanging.stdout is not None
        assert hanging.stdout.readline() == "hanging\n"
        assert hanging.poll() is None
        service.kill()
        service.wait()
        assert hanging.wait(60) == 1


def test_a_process_ends_when_the_other_has_ended_before(service: "subprocess.Popen[str]") -> None:
    service.kill()
    service.wait()
    with start_hanging(service.pid, HERE) as hanging:
        assert hanging.wait(60) == 1


def test_a_number_of_another_machine_or_container_says_nothing(service: "subprocess.Popen[str]") -> None:
    service.kill()
    service.wait()
    with start_hanging(service.pid, "another boot pid:[4026531836]") as hanging:
        assert hanging.stdout is not None
        assert hanging.stdout.readline() == "hanging\n"
        hanging.kill()
