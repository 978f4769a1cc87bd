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

from ttmark.evaluation.bench.detect import SynthIdDetector, cut_texts
from ttmark.evaluation.bench.in_vllm_table import UNMARKED_IN_VLLM, ratios
from ttmark.evaluation.bench.timing import time_in_turns
from ttmark.evaluation.bench.vllm_process import VllmPeer, vllm
from ttmark.evaluation.bench.workload import VLLM, Measurement, Rates, Stopwatch, Workload
from ttmark.evaluation.cli.bench_commands import bench_app
from ttmark.evaluation.report.result import Table
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.services.bulk import bulk_systems
from ttmark.shared.tokenization import TextTokenizer

TEXT = "The command reads the file and writes what it has found there to the standard output. " * 20


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    return TextTokenizer.load(DEMO_MODEL_PATH)


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
    (scores,) = SynthIdDetector(tokenizer)([TEXT, TEXT[4:]])
    assert scores.shape == (2,)
    assert ((scores > 0.4) & (scores < 0.6)).all()


def test_our_modes_examine_every_text(tokenizer: TextTokenizer) -> None:
    systems = bulk_systems(tokenizer, "mcmark", 2)
    assert list(systems) == ["ours, direct", "ours, aligned", "ours, localized"]
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


def test_medians_of_the_rounds_are_compared_with_vllms() -> None:
    workload = Workload(8, 4)

    def measured(system: str, *rates: float, **details: float) -> list[Measurement]:
        return [Measurement(system, workload, Rates(rate, rate), details) for rate in rates]

    shares = {"share_outside_forward": 0.07, "seconds_per_token": 0.0312}
    pairs = measured("in vLLM, r = 2", 30.0, 45.0, 48.0, **shares)
    unmarked = measured(UNMARKED_IN_VLLM, 60.0)
    longer = Measurement(VLLM, Workload(8, 4, 4096), Rates(9.0, 9.0))
    failed = Measurement(VLLM, Workload(32, 4), error="no answer")
    table = ratios([*measured(VLLM, 90.0, 50.0, 40.0), *pairs, *unmarked, longer, failed, failed])
    assert [row[1:2] + row[3:] for row in table.rows] == [
        ("32", VLLM, "50.0", "40.0 to 90.0", "50.0", "1.00", "", "0.83", "", ""),
        ("32", "in vLLM, r = 2", "45.0", "30.0 to 48.0", "45.0", "0.90", "", "0.75", "31.2", "7 %"),
        ("32", UNMARKED_IN_VLLM, "60.0", "60.0 to 60.0", "60.0", "1.20", "", "1.00", "", ""),
        ("4096", VLLM, "9.0", "9.0 to 9.0", "9.0", "1.00", "", "", "", ""),
    ]
    assert table.notes == ("vLLM: no answer",)


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


def an_interpreter(folder: Path, script: str) -> Path:
    """Stands in for a Python that has vLLM."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_vllm_in_another_process_answers_job_after_job(tmp_path: Path) -> None:
    script = f"""
read arguments
while read job; do
    echo "$arguments $job" >> {tmp_path}/seen
    echo noise; echo 'answer: {{"tokens": 8, "seconds": 2, "cpu_seconds": 4}}'
done"""
    model = str(DEMO_MODEL_PATH)
    peer = VllmPeer(an_interpreter(tmp_path, script), model, "float32", 1, 60, sequences=1)
    first = peer.measure(Workload(1, 4))
    other = peer.measure(Workload(1, 4), {"temperature": 0.7}, "other")
    peer.close()
    assert (first.system, other.system) == (VLLM, "other")
    assert first.rates == Rates(4.0, 2.0)
    seen = (tmp_path / "seen").read_text().splitlines()
    assert [line.count('"top_k": 50') for line in seen] == [1, 0]
    assert all('"max_num_seqs": 2' in line for line in seen)


def test_what_vllm_complains_of_stands_in_place_of_figures(tmp_path: Path) -> None:
    script = "echo 'ValueError: of its own' >&2; echo '  Value error, needs Triton. [...]' >&2; echo more >&2"
    failed = vllm(an_interpreter(tmp_path, script), str(DEMO_MODEL_PATH), "float32", 1, Workload(1, 4), 60)
    assert (failed.rates, failed.error) == (None, "Value error, needs Triton. [...]")
    missing = vllm(tmp_path / "nothing", str(DEMO_MODEL_PATH), "float32", 1, Workload(1, 4), 60)
    assert missing.error is not None
    assert "nothing" in missing.error


def test_vllm_without_an_answer_is_ended(tmp_path: Path) -> None:
    slow = an_interpreter(tmp_path, "exec sleep 60")
    assert vllm(slow, str(DEMO_MODEL_PATH), "float32", 1, Workload(1, 4), 0.2).error == "no answer in 0 s"
