"""A bulk run: chunks of rows go to worker processes, their lines to the file, in order.

A process that dies takes no row with it.
"""

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache
from typing import Self

import orjson

from ttmark.detect_service.features.bulk.examiner import Examiner
from ttmark.detect_service.features.bulk.input_formats import open_source
from ttmark.detect_service.features.bulk.output_file import BulkJob, Tally
from ttmark.detect_service.features.bulk.row_format import InputRow, error_row
from ttmark.shared.batches import batches

MakeExaminer = Callable[[], Examiner]
"""Makes the examiner of a process: picklable, hashable, and one that opens the keys itself."""


def _start_worker(make: MakeExaminer) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _made(make)


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    """A parent that was killed tells nobody; without it there is nothing to do."""
    parent.join()
    os._exit(1)


@cache
def _made(make: MakeExaminer) -> Examiner:
    return make()


def _examine(make: MakeExaminer, rows: Sequence[InputRow]) -> bytes:
    return _made(make).examine(rows)


@dataclass
class Workers:
    """A pool of `width` processes that is made anew when one of them dies."""

    width: int
    make: MakeExaminer
    _pool: ProcessPoolExecutor = field(init=False)

    def __enter__(self) -> Self:
        self._pool = self._new_pool(self.width)
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def submit(self, rows: Sequence[InputRow]) -> "Future[bytes]":
        try:
            return self._pool.submit(_examine, self.make, rows)
        except BrokenProcessPool:
            self._pool = self._new_pool(self.width)
            return self._pool.submit(_examine, self.make, rows)

    def result(self, rows: Sequence[InputRow], future: "Future[bytes]") -> bytes:
        """The lines of rows that were submitted; a row whose process dies gets a line that says so."""
        try:
            return future.result()
        except BrokenProcessPool:
            return self._apart(rows)

    def _apart(self, rows: Sequence[InputRow]) -> bytes:
        """Examines rows by themselves, halving them until the one that kills its process is alone."""
        with self._new_pool(1) as pool:
            try:
                return pool.submit(_examine, self.make, rows).result()
            except BrokenProcessPool:
                pass
        if len(rows) == 1:
            row = error_row(rows[0].number, None, "the process that examined this row died")
            return orjson.dumps(row) + b"\n"
        middle = len(rows) // 2
        return self._apart(rows[:middle]) + self._apart(rows[middle:])

    def _new_pool(self, count: int) -> ProcessPoolExecutor:
        # Spawned, not forked: a fork copies locks of threads that it does not copy.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(count, context, _start_worker, (self.make,))


ROWS_IN_A_CHUNK = 128
BYTES_IN_A_CHUNK = 4 * 2**20
CHUNKS_FOR_EACH_WORKER = 3

Chunk = list[InputRow]


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run is.

    Attributes:
        rows: written so far, those of an earlier run included.
        new_rows: written by this run.
        share: of the input that has been read, 0 to 1.
    """

    rows: int
    new_rows: int
    share: float


def run_bulk(job: BulkJob, pool: Workers, report: Callable[[Progress], None]) -> tuple[Progress, Tally]:
    """Examines every row that is not done yet and completes the output; where it ended, and what is in it.

    Memory holds at most `CHUNKS_FOR_EACH_WORKER` chunks for each of the pool's processes.

    Raises:
        BulkError: the input cannot be read, or the output is another run's.
    """
    source = open_source(job.source)
    with job.open_partial() as (done, file):
        progress = Progress(done, 0, 0.0)
        waiting: deque[tuple[Chunk, Future[bytes]]] = deque()

        def write_first() -> Progress:
            chunk, future = waiting.popleft()
            file.write(pool.result(chunk, future))
            file.flush()
            share = source.position / source.total if source.total else 1.0
            latest = Progress(progress.rows + len(chunk), progress.new_rows + len(chunk), share)
            report(latest)
            return latest

        rows = source.rows(done)
        for chunk in batches(rows, lambda row: row.size, BYTES_IN_A_CHUNK, count=ROWS_IN_A_CHUNK):
            waiting.append((chunk, pool.submit(chunk)))
            if len(waiting) >= pool.width * CHUNKS_FOR_EACH_WORKER:
                progress = write_first()
        while waiting:
            progress = write_first()
    return progress, job.finish()
