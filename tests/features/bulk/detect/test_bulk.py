"""Bulk runs: one row out for each row in, and the same output whenever a run was interrupted."""

import asyncio
import csv
import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.features.bulk.detect.bulk_runs import OPTIONS, ThisProcess, job, rows_of, run
from tests.unit.detect_service.conftest import HUMAN, Service
from tests.unit.detect_service.foreign_keys import vllm_text
from ttmark.detect_service.features.bulk.examiner import Examiner
from ttmark.detect_service.features.bulk.in_detect.bulk_detection import check_keys
from ttmark.detect_service.features.bulk.input_formats import LONGEST_ROW, BulkError, open_source
from ttmark.detect_service.features.bulk.output_file import BulkJob, Tally
from ttmark.detect_service.features.bulk.row_format import InputRow
from ttmark.detect_service.features.bulk.run import Progress, run_bulk
from ttmark.detect_service.options import DetectionOptions
from ttmark.services.startup import StartupError
from ttmark.shared.manifests.signer import ManifestSigner


class Killed(Exception):
    """Stands for a process that ends where it is."""


@pytest.fixture
def examiner(service) -> Examiner:
    return Examiner(service.backend, "a", OPTIONS)


@pytest.fixture
def source(service, tmp_path: Path) -> Path:
    marked = service.marked("a-one")
    lines = [
        json.dumps({"id": 0, "text": marked}),
        json.dumps({"id": "human", "text": "nothing in here. " * 20}),
        json.dumps({"token_ids": service.tokenizer.encode(marked)}),
        "not json",
        "[1]",
        "",
        json.dumps({"id": "both", "text": "a", "token_ids": [1]}),
        json.dumps({"id": "bad", "token_ids": [-1]}),
        json.dumps({"id": "long", "text": "a" * 5001}),
        json.dumps({"id": "caf\u00e9 \U0001f600", "text": "\U0001f600e\u0301\r\n" * 9}),
    ] * 10
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_every_row_gets_one_row_whatever_it_holds(source: Path, examiner: Examiner) -> None:
    done = run(job(source), examiner)
    rows = rows_of(source.with_name("out.jsonl"))
    assert done == (Progress(100, 100, 1.0), Tally(100, failed=60, found=20))
    assert [row["row"] for row in rows] == list(range(100))
    kinds = [(row["id"], row["verdict"], row["key_id"], row["error"]) for row in rows[:10]]
    assert kinds[:3] == [
        ("0", "watermarked", "a-one", None),
        ("human", "not_detected", None, None),
        (None, "watermarked", "a-one", None),
    ]
    assert all(error for _, _, _, error in kinds[3:9])
    assert kinds[8][3] == "The document has more tokens than the limit of 5000."
    assert (kinds[9][0], kinds[9][3]) == ("caf\u00e9 \U0001f600", None)
    assert rows[10:20] == [{**row, "row": row["row"] + 10} for row in rows[:10]]


def test_a_run_that_is_killed_twenty_times_ends_like_one_that_was_not(source, examiner, monkeypatch):
    monkeypatch.setattr("ttmark.detect_service.features.bulk.run.ROWS_IN_A_CHUNK", 2)
    run(job(source, "whole.jsonl"), examiner)
    whole = source.with_name("whole.jsonl").read_bytes()
    one, generator, kills = job(source), random.Random(3), 0

    while not one.out.exists():
        chunks_left = generator.randrange(1, 4) if kills < 20 else 10**9

        def kill(_: Progress) -> None:
            nonlocal chunks_left
            chunks_left -= 1
            if chunks_left == 0:
                raise Killed

        try:
            run_bulk(one, ThisProcess(examiner), kill)
        except Killed:
            kills += 1
            # A kill can come in the middle of a write.
            written = one.partial.read_bytes()
            one.partial.write_bytes(written[: len(written) - generator.randrange(0, 400)])
    assert kills == 20
    assert one.out.read_bytes() == whole
    assert not one.partial.exists()
    assert not one.state.exists()


def test_parquet_gives_what_jsonl_gives(source: Path, examiner: Examiner, service) -> None:
    texts = [service.marked("a-two"), "human text " * 30, None, "a" * 5001]
    table = pa.table({"id": [1, 2, 3, 4], "text": texts, "other": [0.5] * 4})
    path = source.with_name("in.parquet")
    parquet.write_table(table, path, row_group_size=3)
    run(BulkJob(path, source.with_name("out.parquet"), OPTIONS, "k"), examiner)
    run(BulkJob(path, source.with_name("same.jsonl"), OPTIONS, "k"), examiner)
    rows = parquet.read_table(source.with_name("out.parquet")).to_pylist()
    assert rows == rows_of(source.with_name("same.jsonl"))
    assert [row["verdict"] for row in rows] == ["watermarked", "not_detected", None, None]
    assert [row.number for row in open_source(path).rows(3)] == [3]


def test_csv_is_read_and_written_and_gives_what_jsonl_gives(source, examiner, service):
    marked = service.marked("a-two")
    path = source.with_name("in.csv")
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["other", "id", "text", "token_ids"])
        writer.writerow(["x", "1", marked, ""])
        writer.writerow(["x", "2", 'human "text",\n' * 30, ""])
        writer.writerow(["x", "", "", json.dumps(service.tokenizer.encode(marked))])
        writer.writerow(["x", "4", "", "[1,"])
        writer.writerow(["x", "5", "a", "[1]"])
        writer.writerow(["x"])
    with path.open("ab") as file:
        file.write(b"x,7,\xff,\r\n")
    run(BulkJob(path, source.with_name("same.jsonl"), OPTIONS, "k"), examiner)
    localized = DetectionOptions(mode="localized", keys=("a-two",))
    run(BulkJob(path, source.with_name("out.csv"), localized, "k"), Examiner(service.backend, "a", localized))
    run(
        BulkJob(path, source.with_name("out.jsonl"), localized, "k"),
        Examiner(service.backend, "a", localized),
    )
    rows = rows_of(source.with_name("same.jsonl"))
    assert [row["id"] for row in rows] == ["1", "2", None, None, "5", None, None]
    assert [row["verdict"] for row in rows[:3]] == ["watermarked", "not_detected", "watermarked"]
    assert all(row["error"] for row in rows[3:])
    assert [row.number for row in open_source(path).rows(5)] == [5, 6]
    with source.with_name("out.csv").open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    for row, same in zip(written, rows_of(source.with_name("out.jsonl")), strict=True):
        for name in ("segments", "foreign_marks", "metadata"):
            assert json.loads(row.pop(name) or "null") == same.pop(name)
        assert row == {name: "" if value is None else str(value) for name, value in same.items()}


def test_no_cell_of_a_csv_file_is_a_formula_and_numbers_stay_numbers(source, examiner, service):
    cells = json.loads(Path("tests/harness/spreadsheet_cells.json").read_text())
    names = [name for name, _ in cells]
    rows = [{"id": name, "text": service.marked("a-two")} for name in names]
    source.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    run(job(source, "out.csv"), examiner)
    with source.with_name("out.csv").open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["id"] for row in written] == [cell for _, cell in cells]
    assert all(float(row["log10_p"]) < -5 for row in written)


def test_a_table_whose_head_is_longer_than_a_row_may_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("a" * (LONGEST_ROW + 1))
    with pytest.raises(BulkError, match=r"long\.csv is not a CSV file"):
        open_source(tmp_path / "long.csv")


def test_an_output_of_no_kind_that_is_written_is_refused(source: Path, examiner: Examiner) -> None:
    with pytest.raises(BulkError, match=r"out\.txt is none of"):
        run(job(source, "out.txt"), examiner)


@pytest.mark.parametrize(
    ("row", "options", "reason"),
    [
        ({"text": "a"}, DetectionOptions(), "No key's tokenizer is installed"),
        ({"token_ids": [1]}, DetectionOptions(), None),
        ({"text": "a"}, DetectionOptions(keys=("c-foreign",)), "c-foreign"),
        ({"token_ids": [1]}, DetectionOptions(keys=("a-one",)), "no such key"),
    ],
)
def test_a_run_whose_keys_cannot_read_its_rows_fails_at_its_start(service, source, row, options, reason):
    source.write_text("not json\n" + json.dumps(row) + "\n")
    if reason is None:
        check_keys(source, options, "c", service.backend)
    else:
        with pytest.raises(StartupError, match=reason):
            check_keys(source, options, "c", service.backend)


def test_lines_of_another_run_are_not_continued(source: Path, examiner: Examiner) -> None:
    def kill(_: Progress) -> None:
        raise Killed

    with pytest.raises(Killed):
        run_bulk(job(source), ThisProcess(examiner), kill)
    for other in (job(source, options=DetectionOptions(fpr=1e-3)), job(source, keys="rotated")):
        with pytest.raises(BulkError, match="another run"):
            run(other, examiner)
    source.write_text("changed\n")
    with pytest.raises(BulkError, match="another run"):
        run(job(source), examiner)


def test_an_output_is_never_overwritten(source: Path, examiner: Examiner) -> None:
    source.with_name("out.jsonl").write_text("mine")
    with pytest.raises(BulkError, match="exists already"):
        run(job(source), examiner)


def test_an_empty_input_gives_an_empty_output(source: Path, examiner: Examiner) -> None:
    source.write_text("")
    assert run(job(source), examiner)[1] == Tally(0, 0, 0)
    assert source.with_name("out.jsonl").read_text() == ""


@pytest.mark.parametrize(
    "name", ["missing.jsonl", "in.txt", "in.csv", "damaged.parquet", "columns.parquet", "folder"]
)
def test_an_input_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "in.txt").write_text("text")
    (tmp_path / "in.csv").write_text("body,id\na,1\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "damaged.parquet").write_text("PAR1")
    parquet.write_table(pa.table({"body": ["a"]}), tmp_path / "columns.parquet")
    with pytest.raises(BulkError, match=name):
        open_source(tmp_path / name)


def test_a_row_without_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttmark.detect_service.features.bulk.input_formats.LONGEST_ROW", 100)
    path = tmp_path / "in.jsonl"
    path.write_text("x" * 1050 + "\n" + '{"text": "a"}\n' + "y" * 99 + "\n" + "z" * 100)
    rows = list(open_source(path).rows(0))
    assert [(row.number, row.error is None, row.size) for row in rows] == [
        (0, False, 0),
        (1, True, 13),
        (2, True, 99),
        (3, False, 0),
    ]


async def test_a_bulk_row_of_ids_that_no_tokenizer_gives_is_refused_as_the_route_refuses_it(
    service: Service,
) -> None:
    ids = [service.tokenizer.id_bound] * 40
    row = InputRow(1, b'{"token_ids": %s}' % str(ids).encode())
    (output,) = Examiner(service.backend, "a", DetectionOptions(keys=("a-one",))).output_rows([row])
    answer = await service.post("/v1/detect", {"inputs": [{"token_ids": ids}], "keys": ["a-one"]})
    assert answer.status_code == 422
    assert output["error"] == answer.json()["detail"]


async def test_rows_name_the_key_of_a_pool_and_its_payload(service: Service) -> None:
    for key_id, payload in (("d-pool", None), ("e-payload", 8), ("e-pool", None)):
        examiner = Examiner(service.backend, key_id[0], DetectionOptions(mode="localized"))
        row = InputRow(1, json.dumps({"text": service.marked(key_id, 300, number=8)}).encode())
        (output,) = examiner.output_rows([row])
        found = (output["key_id"], output["pool_key"], output["pool_keys_found"], output["payload"])
        assert found == (key_id, 8, 1, payload)
        passages = [(segment["pool_key"], segment["payload"]) for segment in output["segments"]]
        assert passages == [(8, payload)]


async def test_rows_name_marks_of_other_systems_and_verify_no_manifest(foreign, service, tmp_path):
    signer = ManifestSigner(service.authority.chain, service.authority.key)
    theirs = vllm_text(service.tokenizer, 300)
    both = service.marked("a-one", 300) + HUMAN * 6 + theirs
    texts = [both + signer.wrapper(both, model="m"), theirs, "nothing in here. " * 20]
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    options = DetectionOptions(keys=("a-one", "a-two", "partner"))
    examiner = Examiner(service.backend, "a", options)
    _, tally = await asyncio.to_thread(run, job(source, options=options), examiner)
    assert tally == Tally(3, failed=0, found=2, unread=1)
    shown = [(row["basis"], row["foreign_marks"], row["metadata"]) for row in rows_of(tmp_path / "out.jsonl")]
    assert shown == [
        ("watermark", ["partner"], ["not_examined"]),
        ("foreign_watermark", ["partner"], None),
        ("watermark", None, None),
    ]
