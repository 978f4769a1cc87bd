"""`ttmark bench detect` and what it is made of."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from typer.testing import CliRunner

from ttmark.evaluation.bench.detect import cut_texts, synthid_detector, time_in_turns
from ttmark.evaluation.bench.in_vllm import UNMARKED, medians
from ttmark.evaluation.bench.workload import STRICT, Measurement, Rates, Stopwatch, Workload, ratio_table
from ttmark.evaluation.cli.bench_commands import bench_app
from ttmark.evaluation.report.result import Table
from ttmark.services.bulk_detection import bulk_systems
from ttmark.shared.tokenization import TextTokenizer

pytestmark = pytest.mark.long

TEXT = "The command reads the file and writes what it has found there to the standard output. " * 20


@pytest.fixture
def human(tmp_path: Path) -> Path:
    path = tmp_path / "human.jsonl"
    path.write_bytes(orjson.dumps({"text": TEXT}) + b"\n")
    return path


def test_systems_take_turns_and_are_compared_with_the_first() -> None:
    order: list[str] = []

    def spin(name: str, rounds: int) -> None:
        order.append(name)
        sum(range(rounds))

    systems = {"slow": lambda: spin("slow", 4_000_000), "fast": lambda: spin("fast", 10_000)}
    slow, fast = time_in_turns(systems, 100, 2)
    assert order == ["slow", "fast"] * 2
    assert slow.share == 1
    assert fast.share == pytest.approx(fast.per_cpu_second / slow.per_cpu_second)
    assert fast.share > 1


def test_texts_are_cut_to_equal_numbers_of_tokens(tokenizer: TextTokenizer) -> None:
    texts = cut_texts(tokenizer, [TEXT], 3, 40)
    assert len(texts) == 3
    assert all(abs(len(tokenizer.encode(text)) - 40) <= 2 for text in texts)
    with pytest.raises(ValueError, match="of 40 tokens, not 1000"):
        cut_texts(tokenizer, [TEXT], 1000, 40)


def test_the_peer_scores_half_of_a_text_without_its_watermark(tokenizer: TextTokenizer) -> None:
    (scores,) = synthid_detector(tokenizer)([TEXT, TEXT[4:]])
    assert scores.shape == (2,)
    assert ((scores > 0.4) & (scores < 0.6)).all()


def test_our_modes_examine_every_text(tokenizer: TextTokenizer) -> None:
    systems = bulk_systems(tokenizer, "mcmark", 2)
    names = ["ours, as /v1/detect asks", "ours, direct", "ours, aligned", "ours, localized"]
    assert list(systems) == names
    for detect in systems.values():
        (rows,) = detect([TEXT, TEXT])  # type: ignore[misc, attr-defined]
        verdicts = [orjson.loads(row)["verdict"] for row in rows.splitlines()]
        assert len(verdicts) == 2
        assert set(verdicts) <= {"too_short", "not_detected"}


def test_the_command_writes_ratios_with_the_machine(human: Path, tmp_path: Path) -> None:
    def ours(tokenizer: TextTokenizer, scheme: str, block_size: int) -> dict[str, object]:
        def detect(texts: Sequence[str]) -> list[list[int]]:
            return [tokenizer.encode(text) for text in texts]

        return {f"{scheme} {block_size}": detect}

    target = tmp_path / "detect.json"
    arguments = ["detect", "--documents", "2", "--tokens", "40", "--human", str(human), "--json", str(target)]
    result = CliRunner().invoke(bench_app(ours), arguments)  # type: ignore[arg-type]
    assert result.exit_code == 0, result.output
    document = orjson.loads(target.read_bytes())
    assert [row["name"] for row in document["rows"]] == [
        "the bare tokenizer",
        "synthid 2",
        "transformers SynthID",
    ]
    assert document["machine"]["cores"] >= 1


def test_a_name_in_brackets_is_text_on_the_terminal() -> None:
    console = Console(width=80, record=True)
    console.print(Table("[title]", ("[a]",), (("rows[b].share",),), ("[note]",)).rich())
    shown = console.export_text()
    assert all(text in shown for text in ("[title]", "[a]", "rows[b].share", "[note]"))


def test_medians_of_the_rounds_are_compared_with_unmarked_text() -> None:
    def measured(system: str, workload: Workload, *rates: float) -> list[Measurement]:
        details = {"seconds_per_token": 0.0312}
        return [Measurement(system, workload, Rates(rate, rate), details) for rate in rates]

    short, long = Workload(8, 4), Workload(8, 4, 4096)
    pairs = measured("in vLLM, r = 2", short, 30.0, 48.0, 45.0)
    table = medians([*pairs, *measured(UNMARKED, short, 60.0), *measured("in vLLM, r = 2", long, 9.0)])
    assert [row[1:2] + row[3:] for row in table.rows] == [
        ("32", "in vLLM, r = 2", "45.0", "30.0 to 48.0", "0.75", "31.2"),
        ("32", UNMARKED, "60.0", "60.0 to 60.0", "1.00", "31.2"),
        ("4096", "in vLLM, r = 2", "9.0", "9.0 to 9.0", "", "31.2"),
    ]


def test_ours_is_compared_with_what_ran_under_the_same_load_and_filters_by_cpu_time() -> None:
    def measured(system: str, rate: float, workload: Workload) -> Measurement:
        return Measurement(system, workload, Rates(per_second=1.0, per_cpu_second=rate))

    paper, strict = Workload(8, 4), Workload(8, 4, filters=STRICT)
    table = ratio_table(
        [
            measured("ours, no watermark", 400.0, paper),
            measured("ours, r = 2, b = 4", 300.0, paper),
            measured("transformers generate", 200.0, paper),
            measured("transformers generate, SynthID", 20.0, paper),
            measured("ours, no watermark", 50.0, strict),
            measured("ours, r = 2", 45.0, strict),
        ]
    )
    assert table.rows == (
        ("8", "(50, 0.95, 1)", "ours, no watermark", "1.00", "2.00", "20.00"),
        ("8", "(50, 0.95, 1)", "ours, r = 2, b = 4", "0.75", "1.50", "15.00"),
        ("8", "(20, 0.8, 0.7)", "ours, no watermark", "1.00", "", ""),
        ("8", "(20, 0.8, 0.7)", "ours, r = 2", "0.90", "", ""),
    )


def test_a_stopwatch_counts_what_its_processes_compute() -> None:
    code = "import time\nprint(flush=True)\nwhile time.process_time() < 60: pass"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        watch, own = Stopwatch(), time.process_time()
        while 1 / watch.rates(1).per_cpu_second < 0.5 + time.process_time() - own:
            time.sleep(0.1)
    finally:
        child.kill()
        child.communicate()
