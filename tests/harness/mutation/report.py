"""The table of a run, in Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.harness.mutation.changes import Change


@dataclass(frozen=True)
class Row:
    """One change, what became of it, and why that is right where nobody caught it."""

    folder: str
    change: Change
    outcome: dict[str, Any]
    reason: str

    @property
    def record(self) -> dict[str, Any]:
        """For a results file."""
        change = self.change
        place = {"file": change.path, "line": change.line, "code": change.code, "change": change.what}
        return {**place, **self.outcome, "reason": self.reason}


def caught(outcome: Mapping[str, Any]) -> bool:
    """Whether a test failed, or the tests did not end."""
    return outcome["verdict"] in ("caught", "timeout")


def show(rows: Sequence[Row], code_lines: Mapping[str, int], least: float) -> bool:
    """Prints the changes and the shares; whether enough were caught and every other one has an answer."""
    print("| line | change | verdict | by |\n|---|---|---|---|")
    for row in rows:
        place = f"{row.change.path}:{row.change.line}"
        by = f"`{row.outcome['test']}`" if row.outcome["test"] else row.reason
        print(f"| {place} | {_cell(row.change.what)} | {row.outcome['verdict']} | {_cell(by, code=False)} |")
    print("\n| folder | lines | changed | caught | others that are answered |\n|---|---|---|---|---|")
    shares = []
    for folder, lines in code_lines.items():
        some = [row for row in rows if row.folder == folder]
        number = sum(caught(row.outcome) for row in some)
        answered = sum(not caught(row.outcome) and bool(row.reason) for row in some)
        shares.append((lines, number / max(1, len(some))))
        print(f"| {folder} | {lines:,} | {len(some)} | {number} | {answered} |")
    total = sum(caught(row.outcome) for row in rows)
    weighted = sum(lines * share for lines, share in shares) / sum(lines for lines, _ in shares)
    percent = 100 * total / max(1, len(rows))
    print(f"\n{total} of {len(rows)} caught ({percent:.0f} %; {100 * weighted:.0f} % weighted by lines)")
    opened = [row for row in rows if not caught(row.outcome) and not row.reason]
    for row in opened:
        print(f"mutate: {row.outcome['verdict']}, and no answer: {row.change.key}")
    return percent >= least and not opened


def _cell(text: str, code: bool = True) -> str:
    text = text.replace("|", "\\|")
    return f"`{text}`" if code else text
