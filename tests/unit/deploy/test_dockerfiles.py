"""The Dockerfiles, linted; `make stack-test` builds them."""

import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

DOCKERFILES = ("gen.Dockerfile", "detect.Dockerfile", "vllm.Dockerfile")


@pytest.mark.parametrize("name", DOCKERFILES)
def test_hadolint_finds_nothing(root: Path, name: str) -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    result = subprocess.run(
        [hadolint, "--no-color", root / "deploy/docker" / name], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", DOCKERFILES)
def test_the_base_is_pinned_and_the_process_is_not_root(root: Path, name: str) -> None:
    text = (root / "deploy/docker" / name).read_text()
    assert all(
        re.fullmatch(r"(python|vllm/vllm-openai):v?\d+\.\d+\.\d+(-[\w-]+)?", base)
        for base in re.findall(r"^FROM (\S+)", text, re.M)
    )
    assert re.findall(r"^USER (\d+)", text, re.M)[-1] == "10001"
    assert "HEALTHCHECK" in text


def test_vllms_image_keeps_what_it_has_and_takes_the_rest_as_locked(root: Path, tmp_path: Path) -> None:
    text = (root / "deploy/docker/vllm.Dockerfile").read_text()
    step = re.search(r"awk .*?(?= > /tmp/constraints.txt)", text, re.DOTALL)
    assert step
    command = step[0].replace("\\\n", "").replace("/tmp/there.txt", "there.txt")
    (tmp_path / "there.txt").write_text("pyyaml==6.0.1\ntyping-extensions==4.1\n")
    (tmp_path / "constraints.txt").write_text(
        "# Locked\nPyYAML==6.0.3\nray==2.60.0\ntyping_extensions==4.15.0\n"
    )
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["pyyaml==6.0.1", "typing-extensions==4.1", "ray==2.60.0"]


_LOOK_UP = """\
import socket, time
began = time.monotonic()
print(socket.getaddrinfo("redis.ttmark.test", 6379, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
print(time.monotonic() - began)
"""


@pytest.mark.long
@pytest.mark.skipif(
    subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0,
    reason="only root can give a process a name server of its own",
)
@pytest.mark.parametrize("name", DOCKERFILES)
def test_a_lost_dns_query_is_repeated_before_redis_is_given_up(root: Path, tmp_path: Path, name: str) -> None:
    options = re.search(r'RES_OPTIONS="(.*?)"', (root / "deploy/docker" / name).read_text())
    assert options
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.77\n")
    look_up = f"mount --bind {tmp_path}/resolv.conf /etc/resolv.conf && exec {sys.executable} -c '{_LOOK_UP}'"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.77", 53))
        threading.Thread(target=_answer_the_second_query, args=(server,), daemon=True).start()
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", look_up],
            env={"RES_OPTIONS": options[1]}, capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
    address, seconds = done.stdout.split()
    assert address == "10.1.2.3"
    assert 0.9 < float(seconds) < 3


def _answer_the_second_query(server: socket.socket) -> None:
    server.recvfrom(512)
    query, client = server.recvfrom(512)
    header = query[:2] + b"\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00"
    record = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04" + socket.inet_aton("10.1.2.3")
    server.sendto(header + query[12:] + record, client)
