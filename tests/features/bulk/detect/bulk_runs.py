"""Bulk runs in this process."""

import json
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from ttmark.detect_service.features.bulk.examiner import Examiner
from ttmark.detect_service.features.bulk.output_file import BulkJob, Tally
from ttmark.detect_service.features.bulk.row_format import InputRow
from ttmark.detect_service.features.bulk.run import Progress, run_bulk
from ttmark.detect_service.options import DetectionOptions

OPTIONS = DetectionOptions(keys=("a-one", "a-two"))


@dataclass(frozen=True)
class ThisProcess:
    """A pool that examines rows at once, in the process that submits them."""

    examiner: Examiner
    width: int = 1

    def submit(self, rows: Sequence[InputRow]) -> Future[bytes]:
        future: Future[bytes] = Future()
        future.set_result(self.examiner.examine(rows))
        return future

    def result(self, _: Sequence[InputRow], future: Future[bytes]) -> bytes:
        return future.result()


def job(
    source: Path, name: str = "out.jsonl", options: DetectionOptions = OPTIONS, keys: str = "k"
) -> BulkJob:
    return BulkJob(source, source.with_name(name), options, keys)


def run(one: BulkJob, examiner: Examiner) -> tuple[Progress, Tally]:
    return run_bulk(one, ThisProcess(examiner), lambda _: None)


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
