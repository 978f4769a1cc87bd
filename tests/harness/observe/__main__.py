"""`make observe`: has every expression of every panel and rule data, of services under traffic? Else 1."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.harness.observe.check import Verdict, check_all, summary
from tests.harness.observe.prometheus import Prometheus
from tests.harness.observe.services import Bed, free_port
from tests.harness.observe.traffic import Traffic

# Small enough for the burst of the traffic to overflow, so that refusals are seen too.
SETTINGS = {"TTMARK_MAX_CONCURRENCY": "4", "TTMARK_MAX_QUEUE": "8"}


def observe(folder: Path, model: str, seconds: float) -> tuple[list[Verdict], dict[str, int]]:
    """The verdict on every expression after at most `seconds` of traffic, and the answers to the traffic."""
    with (
        Bed(folder, model=model, settings=SETTINGS, often=True) as bed,
        Prometheus(folder / "prometheus", free_port(), bed.targets) as prometheus,
        Traffic(bed) as traffic,
    ):
        deadline = time.monotonic() + seconds
        verdicts = []
        while True:
            time.sleep(3)
            verdicts = check_all(prometheus)
            if time.monotonic() > deadline or not any(verdict.problem for verdict in verdicts):
                return verdicts, dict(sorted(traffic.answers.items()))


def main() -> int:
    """Prints the table; the exit code says whether every expression has data."""
    parser = argparse.ArgumentParser(description="Check dashboards and rules against the running services.")
    parser.add_argument("--model", default="demo")
    parser.add_argument("--seconds", type=float, default=60.0, help="longest time of traffic")
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(prefix="ttmark-observe-") as folder:
        verdicts, answers = observe(Path(folder), options.model, options.seconds)
    for verdict in verdicts:
        if verdict.problem:
            console.print(f"[red]{verdict.expression.kind}[/] {verdict.expression.place}: {verdict.problem}")
            console.print(f"    {verdict.expression.promql.strip()}", markup=False)
    console.print("answers:", ", ".join(f"{name} x {count}" for name, count in answers.items()))
    table = Table("expressions", "checked", "with data")
    for kind, (total, well) in summary(verdicts).items():
        table.add_row(kind, str(total), str(well))
    console.print(table)
    return 1 if any(verdict.problem for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
