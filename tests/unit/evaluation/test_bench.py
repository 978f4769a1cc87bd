"""What `ttmark bench` is made of."""

import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from ttmark.evaluation.bench.generation import show
from ttmark.evaluation.bench.in_vllm import UNMARKED, medians
from ttmark.evaluation.bench.llama_cpp_peer import LlamaCpp
from ttmark.evaluation.bench.workload import STRICT, Measurement, Rates, Stopwatch, Workload, ratio_table
from ttmark.evaluation.report import Table

pytestmark = pytest.mark.long


def test_figures_are_said_shown_and_written_with_the_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    item = Measurement("ours", Workload(8, 4), Rates(30.0, 20.0))
    target = tmp_path / "figures.json"
    assert show(iter([item]), lambda seen: Table(f"of {len(seen)}", ("a",), (("b",),)), target) == [item]
    written, said = capsys.readouterr()
    assert said == "ours, 8 x (50, 0.95, 1): 30.0 tokens/s\n"
    assert "of 1" in written
    document = orjson.loads(target.read_bytes())
    (row,) = document["rows"]
    assert (row["name"], row["rates"]["per_second"]) == ("ours, 8 x (50, 0.95, 1)", 30.0)
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
            measured("llama.cpp, no watermark", 250.0, paper),
            measured("ours, no watermark", 50.0, strict),
            measured("ours, r = 2", 45.0, strict),
        ]
    )
    assert table.rows == (
        ("8", "(50, 0.95, 1)", "ours, no watermark", "1.00", "2.00", "20.00", "1.60"),
        ("8", "(50, 0.95, 1)", "ours, r = 2, b = 4", "0.75", "1.50", "15.00", "1.20"),
        ("8", "(20, 0.8, 0.7)", "ours, no watermark", "1.00", "", "", ""),
        ("8", "(20, 0.8, 0.7)", "ours, r = 2", "0.90", "", "", ""),
    )


def test_what_llama_cpp_cannot_run_is_said_in_one_line(tmp_path: Path) -> None:
    """A file that is none, or that `xllamacpp` is not installed."""
    with pytest.raises(RuntimeError, match=r"^llama\.cpp: \w*Error: .+$"):
        LlamaCpp(str(tmp_path / "none.gguf"), 1).measure(Workload(1, 4), [[1, 2, 3, 4]])


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
