"""Looks for known vulnerabilities in the locked versions, with pip-audit: `python -m tests.harness.audit`.

Without the data it says so in one line and passes, unless `--need-data` is given. Others are pip-audit's.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0
LOCKED = re.compile(r"# Locked on (\d{4}-\d{2}-\d{2})\. Used by pip install -c\. Renew it with: make lock")
_PIN = re.compile(r"[\w.-]+==[\w.!-]+")


class BadInput(Exception):
    """A file or an argument is not as it has to be; the message says what to write."""


class NoData(Exception):
    """Nothing is known of any package, so nothing can be said."""


@dataclass(frozen=True)
class Accepted:
    """A vulnerability that somebody decided to live with until a day."""

    id: str
    reason: str
    until: date


@dataclass(frozen=True)
class Finding:
    """A vulnerability of a locked version; `fixed_in` is empty where no version is without it."""

    package: str
    version: str
    names: tuple[str, ...]
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        what = f"{self.package} {self.version}: {' = '.join(self.names)}"
        if not self.fixed_in:
            return f"{what}. No version without it is known: replace the package, or accept it for a while."
        return f"{what}. Fixed in {', '.join(self.fixed_in)}: pip install that version, then `make lock`."


def locked_on(path: Path) -> date:
    """The day on which the versions were locked, from the file's first line."""
    first, *rest = path.read_text().splitlines() or [""]
    match = LOCKED.fullmatch(first)
    if match is None:
        raise BadInput(f"{path.name}, line 1: expected {LOCKED.pattern!r}; write the file with `make lock`.")
    for number, line in enumerate(rest, start=2):
        if not _PIN.fullmatch(line):
            raise BadInput(f"{path.name}, line {number}: {line!r} is not `name==version`.")
    return date.fromisoformat(match[1])


def read_accepted(path: Path) -> list[Accepted]:
    entries = tomllib.loads(path.read_text()).get("accepted", [])
    for number, entry in enumerate(entries, start=1):
        types = {name: type(value) for name, value in entry.items()}
        if types != {"id": str, "reason": str, "until": date} or not entry["reason"].strip():
            fields = "id = '...', reason = '...', until = YYYY-MM-DD"
            raise BadInput(f"{path.name}, entry {number}: needs {fields}.")
    return [Accepted(**entry) for entry in entries]


def pip_audit(constraints: Path, arguments: Sequence[str] = (), seconds: float = SECONDS) -> dict[str, Any]:
    options = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(constraints), *options, *arguments]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise NoData(f"no answer within {seconds:.0f} s") from None
    last_words = (run.stderr.strip().splitlines() or ["no report"])[-1][:200]
    if run.returncode == 2:  # argparse's
        raise BadInput(last_words)
    try:
        report: dict[str, Any] = json.loads(run.stdout)
    except ValueError:
        raise NoData(last_words) from None
    if all("skip_reason" in package for package in report["dependencies"]):
        raise NoData("the index knows none of the packages")
    return report


def findings(report: dict[str, Any]) -> Iterable[Finding]:
    for package in report["dependencies"]:
        for found in package.get("vulns", []):
            names = (found["id"], *found.get("aliases", ()))
            yield Finding(package["name"], package["version"], names, tuple(found["fix_versions"]))


def judge(found: Iterable[Finding], accepted: Sequence[Accepted], today: date) -> list[str]:
    """One line for each vulnerability that is not accepted, or not any more."""
    lines = []
    for finding in found:
        matches = [entry for entry in accepted if entry.id in finding.names]
        if not any(today <= entry.until for entry in matches):
            ended = "".join(f" It was accepted until {entry.until}." for entry in matches)
            lines.append(f"{finding}{ended}")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 0: nothing found, or no data, 1: something to do."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--constraints", type=Path, default=ROOT / "constraints.txt")
    parser.add_argument("--accepted", type=Path, default=ROOT / "deploy/accepted_vulnerabilities.toml")
    parser.add_argument("--need-data", action="store_true", help="fail where there is no data")
    options, arguments = parser.parse_known_args(argv)
    today = datetime.now(UTC).date()
    try:
        day = locked_on(options.constraints)
        accepted = read_accepted(options.accepted)
        report = pip_audit(options.constraints, arguments)
    except BadInput as error:
        print(f"audit: {error}")
        return 1
    except NoData as error:
        age = f"versions locked on {day} ({(today - day).days} days ago)"
        print(f"audit: no vulnerability data here ({error}); {age}")
        return int(options.need_data)
    lines = judge(findings(report), accepted, today)
    for line in lines:
        print(f"audit: {line}")
    if lines:
        print(f"audit: to accept one for a while, see {options.accepted.name}")
        return 1
    unknown = [package["name"] for package in report["dependencies"] if "skip_reason" in package]
    without = f"; no data on {', '.join(unknown)}" if unknown else ""
    print(f"audit: nothing open in {len(report['dependencies']) - len(unknown)} packages{without}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
