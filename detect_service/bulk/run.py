"""A bulk run: chunks of rows to the workers, their lines to the file, in order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from ttmark.detect_service.bulk.job import BulkJob, Tally
from ttmark.detect_service.bulk.rows import InputRow
from ttmark.detect_service.bulk.source import open_source
from ttmark.detect_service.bulk.workers import Pool

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


def run_bulk(job: BulkJob, pool: Pool, report: Callable[[Progress], None]) -> tuple[Progress, Tally]:
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

        for chunk in chunks(source.rows(done)):
            waiting.append((chunk, pool.submit(chunk)))
            if len(waiting) >= pool.width * CHUNKS_FOR_EACH_WORKER:
                progress = write_first()
        while waiting:
            progress = write_first()
    return progress, job.finish()


def chunks(rows: Iterable[InputRow]) -> Iterator[Chunk]:
    """Runs of rows, bounded in number and in bytes."""
    chunk: Chunk = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += row.size
        if len(chunk) == ROWS_IN_A_CHUNK or size >= BYTES_IN_A_CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
