"""Processes that read files may die: of limits, of signals, because nobody waits any more."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path

import psutil
import pyseccomp
import pytest

from tests.harness.hostile_files import HOSTILE_FILES
from tests.harness.hostile_files.mutations import SMALL_FILES
from tests.harness.system_calls import PROFILE
from tests.harness.waiting import until
from ttmark.detect_service.features.files.formats.readers_by_format import extract_text
from ttmark.detect_service.features.files.text.extraction import (
    Extraction,
    ExtractionLimits,
    LimitExceeded,
    UnreadableFile,
)
from ttmark.detect_service.features.files.workers import confinement, worker_process
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionBusy, ExtractionWorkers
from ttmark.detect_service.features.files.workers.worker_process import AnswerHead

ENDLESS = HOSTILE_FILES["attributes.html"](4 * 2**20)
"""Takes minutes, in a library that does not let go of the interpreter."""
HUNGRY = HOSTILE_FILES["elements.html"](2**20)


def limits(**others: float) -> ExtractionLimits:
    return ExtractionLimits(**({"workers": 1, "queue": 1, "cpu_seconds": 600, "seconds": 600.0} | others))  # type: ignore[arg-type]


@pytest.fixture
async def workers() -> AsyncIterator[ExtractionWorkers]:
    async with ExtractionWorkers(limits()) as workers:
        yield workers


@pytest.fixture(autouse=True)
def others() -> Iterator[None]:
    """Readers that tests of other files have left behind are not counted."""
    _OTHERS.update(readers())
    yield
    _OTHERS.clear()


_OTHERS: set[psutil.Process] = set()


def readers() -> set[psutil.Process]:
    found = set()
    for child in psutil.Process().children():
        with suppress(psutil.Error):  # one that has ended and was not waited for has no command line
            if "features.files.worker" in " ".join(child.cmdline()):
                found.add(child)
    return found


def children() -> list[psutil.Process]:
    return list(readers() - _OTHERS)


async def reading(workers: ExtractionWorkers) -> "tuple[asyncio.Task[Extraction], psutil.Process]":
    """A file that is being read without end, and the process that does."""
    await workers.extract("a.txt", b"warm")
    (process,) = children()
    before = sum(process.cpu_times()[:2])
    task = asyncio.create_task(workers.extract("a.html", ENDLESS))
    await until(lambda: sum(process.cpu_times()[:2]) >= before + 0.2)
    return task, process


async def gone(process: psutil.Process) -> None:
    await until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize(
    ("limit", "content", "reason", "words"),
    [
        ({"cpu_seconds": 1}, ENDLESS, "cpu", "limit of 1 CPU seconds"),
        ({"seconds": 3.0}, ENDLESS, "time", "limit of 3 seconds"),
        ({"memory_bytes": 160 * 2**20}, HUNGRY, "memory", "limit of 160 MiB"),
        ({"text_bytes": 10}, b"<p>eleven byte", "text", "limit of 10 bytes"),
    ],
    ids=["cpu", "time", "memory", "text"],
)
async def test_a_limit_ends_a_file_and_the_next_one_is_read(limit, content, reason, words):
    async with ExtractionWorkers(limits(**limit)) as workers:
        with pytest.raises(LimitExceeded, match=words) as caught:
            await workers.extract("a.html", content)
        assert caught.value.reason == reason
        workers.limits = limits()  # the next process may need longer to start where others have the cores
        assert await workers.extract("a.txt", b"next") == Extraction("next", "utf-8")


async def test_a_mail_whose_files_take_too_much_is_read_without_them() -> None:
    mail = EmailMessage()
    mail.set_content("Look.")
    mail.add_attachment("long " * 20, filename="a.txt")
    async with ExtractionWorkers(limits(text_bytes=80)) as workers:
        found = await workers.extract("a.eml", mail.as_bytes())
    assert (found.text, found.unread) == ("Look.\n", "Files that came with the mail were not read.")


async def test_a_process_that_dies_over_a_file_takes_no_other_with_it(workers: ExtractionWorkers) -> None:
    task, process = await reading(workers)
    next_file = asyncio.create_task(workers.extract("a.txt", b"next"))
    process.send_signal(signal.SIGSEGV)
    with pytest.raises(UnreadableFile, match="process that read the file ended") as caught:
        await task
    assert caught.value.reason == "crash"
    assert (await next_file).text == "next"


async def test_a_process_that_dies_while_idle_is_replaced(workers: ExtractionWorkers) -> None:
    await workers.extract("a.txt", b"first")
    (process,) = children()
    process.kill()
    await gone(process)
    assert (await workers.extract("a.txt", b"second")).text == "second"


async def test_one_process_reads_many_files_and_all_of_each(workers: ExtractionWorkers) -> None:
    seen = set()
    for name, content in SMALL_FILES.items():
        found = await workers.extract(name, content)
        assert found == extract_text(name, content)
        assert found.text or found.parts
        seen |= {child.pid for child in children()}
    assert len(seen) == 1


async def test_whoever_no_longer_waits_ends_the_process_that_reads(workers: ExtractionWorkers) -> None:
    task, process = await reading(workers)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    await gone(process)
    assert (await workers.extract("a.txt", b"next")).text == "next"


TAKEN_OVER = """
import os, resource, socket
from ttmark.detect_service.features.files.formats import readers_by_format
from ttmark.detect_service.features.files.text.extraction import Extraction
from ttmark.detect_service.features.files.workers import worker
def tried(content):
    try:
        eval(content)
    except OSError as error:
        return Extraction(type(error).__name__)
    return Extraction("done")
readers_by_format._READERS["text"] = tried
worker.main()
"""
TRIED = {
    "open('{file}', 'r+')": "PermissionError",
    "open('{file}.new', 'x')": "PermissionError",
    "os.remove('{file}')": "PermissionError",
    "open('{file}')": "PermissionError",
    "open('/proc/{pid}/mem', 'rb')": "PermissionError",
    "socket.create_connection(('127.0.0.1', {port}))": "PermissionError",
    "socket.create_server(('127.0.0.1', 0))": "PermissionError",
    "os.kill({pid}, 0)": "PermissionError",
    "resource.prlimit({pid}, resource.RLIMIT_CPU, (60, -1))": "PermissionError",
    "os.fork() or os._exit(0)": "PermissionError",
    "os.execv('/bin/true', ['true'])": "PermissionError",
    "open(os.__file__)": "done",
}


@pytest.mark.skipif(bool(confinement.lacking()), reason="the kernel confines nothing")
async def test_what_takes_a_process_over_gets_nowhere(workers, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "taken_over.py").write_text(TAKEN_OVER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(worker_process, "_MODULE", "taken_over")
    file, found = tmp_path / "file", {}
    file.touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        for asked in TRIED:
            made = asked.format(file=file, port=server.getsockname()[1], pid=os.getpid())
            try:
                found[asked] = (await workers.extract("a.txt", made.encode())).text
            except UnreadableFile as error:
                found[asked] = error.reason
    assert found == TRIED


def test_where_the_kernel_confines_nothing_files_are_read_and_it_is_said(tmp_path: Path) -> None:
    calls = {"names": ["seccomp", "landlock_create_ruleset"], "action": "SCMP_ACT_ERRNO"}
    (tmp_path / "profile.json").write_text(
        json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [calls]})
    )
    program = """if True:
        import asyncio
        from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
        async def main():
            async with ExtractionWorkers() as workers:
                await workers.warm()
                print(await workers.extract("a.txt", b"read"))
        asyncio.run(main())"""
    under = ["-m", "tests.harness.seccomp_run", str(tmp_path / "profile.json")]
    command = [sys.executable, *under, sys.executable, "-c", program]
    said = subprocess.run(command, cwd=PROFILE.parents[2], capture_output=True, text=True, check=True).stdout
    assert "files_read_without" in said
    assert "missing=['seccomp', 'Landlock']" in said
    assert "text='read'" in said


def test_the_numbers_of_calls_are_those_of_libseccomp() -> None:
    words = iter(confinement._CALLS.split())
    for name, *numbers in zip(words, words, words, strict=True):
        known = [
            pyseccomp.resolve_syscall(arch, name) for arch in (pyseccomp.Arch.X86_64, pyseccomp.Arch.AARCH64)
        ]
        assert [int(number) for number in numbers] == [max(number, -1) for number in known], name


async def test_no_more_files_wait_than_may(workers: ExtractionWorkers) -> None:
    task, _ = await reading(workers)
    waiting = asyncio.create_task(workers.extract("a.txt", b"waits"))
    await asyncio.sleep(0)
    with pytest.raises(ExtractionBusy):
        await workers.extract("a.txt", b"too many")
    task.cancel()
    assert (await waiting).text == "waits"


async def test_one_owner_leaves_half_of_the_places_to_others(workers: ExtractionWorkers) -> None:
    task = asyncio.create_task(workers.extract("a.html", ENDLESS, owner="one"))
    await asyncio.sleep(0)
    with pytest.raises(ExtractionBusy):
        await workers.extract("a.txt", b"more", owner="one")
    other = asyncio.create_task(workers.extract("a.txt", b"other", owner="two"))
    await asyncio.sleep(0)
    task.cancel()
    assert (await other).text == "other"


async def test_an_unknown_format_is_refused_without_a_process(workers: ExtractionWorkers) -> None:
    with pytest.raises(
        UnreadableFile,
        match="txt, md, html, docx, odt, rtf, pdf, epub, eml, mbox, csv, png, jpeg, webp or tiff",
    ):
        await workers.extract("a.exe", b"")
    assert children() == []


async def test_closing_leaves_no_process_behind() -> None:
    async with ExtractionWorkers(limits()) as workers:
        await workers.warm()
        (process,) = children()
    assert not process.is_running()


async def test_a_process_sees_no_secrets_and_writes_no_files(workers, monkeypatch):
    monkeypatch.setenv("TTMARK_KEK", "secret")
    await workers.extract("a.txt", b"")
    (process,) = children()
    assert set(process.environ()) <= {"PYTHONPATH", "LC_CTYPE", "OMP_THREAD_LIMIT"}
    values = [process.rlimit(kind)[0] for kind in (psutil.RLIMIT_FSIZE, psutil.RLIMIT_CORE)]
    assert values == [0, 0]
    assert process.nice() > os.nice(0)


def test_heads_come_back_as_they_were_and_one_that_no_worker_writes_is_refused():
    head = AnswerHead(size=3, encoding="utf-8", message="é\n")
    assert AnswerHead.model_validate_json(head.model_dump_json()) == head
    assert "\n" not in head.model_dump_json()
    fields = (b'"size": -1', b'"size": "1"', b'"reason": "other"', b'"reason": ["cpu"]', b'"more": 1')
    for data in (b"", b"text", b"[]", b"1", b'{"message": 1}', *(b"{%s}" % field for field in fields)):
        with pytest.raises(ValueError):  # noqa: PT011  whatever the message: nobody sees it
            AnswerHead.model_validate_json(data)


async def test_a_process_that_does_not_say_what_it_should_is_ended(tmp_path: Path, monkeypatch) -> None:
    program = tmp_path / "worker"
    program.write_text("#!/bin/sh\necho nonsense\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setattr(worker_process.sys, "executable", str(program))
    worker = await worker_process.WorkerProcess.start(limits())
    with pytest.raises(UnreadableFile, match="damaged or malicious"):
        await worker.read("a.txt", b"text")
    assert not worker.usable
    await asyncio.wait_for(worker.gone(), 10)
