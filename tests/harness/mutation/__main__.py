"""Mutation testing of sampled lines: `python -m tests.harness.mutation`, or `make mutate MUTATE_ARGS=...`.

Changes one line at a time in a copy of the tree, and runs the test files that run it. Ends with 1 where a
change that nobody caught has no answer in tests/mutation_answers.yml.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from tests.harness.mutation.changes import Change, changes_in, sample
from tests.harness.mutation.runs import Ran
from tests.harness.mutation.session import Session

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("gen_service/engine", "gen_service/decoding", "shared/watermark", "shared/vault", "detect_service")
_UNIT = ("detect_service", "gen_service", "public", "services/cli", "shared")
_DEAR = ("browser", "installed", "processes")
_OF_FEATURES = (path for path in (ROOT / "tests/features").glob("*/*") if path.name not in _DEAR)
TESTS = (
    *(f"tests/unit/{name}/" for name in _UNIT),
    *("tests/property/", "tests/contract/"),
    *sorted(str(path.relative_to(ROOT)) for path in _OF_FEATURES),
)
ANSWERS = ROOT / "tests/mutation_answers.yml"


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    folders = options.folder or FOLDERS
    chosen = {folder: sample(changes_in(ROOT, folder), options.lines, options.seed) for folder in folders}
    try:
        with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
            session = Session(ROOT, Path(temporary), options.jobs)
            covered = session.cover(options.tests or TESTS)
            outcomes = session.attempt([one for some in chosen.values() for one in some], covered)
    except KeyboardInterrupt:
        print("mutate: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    answers = yaml.safe_load(ANSWERS.read_text())
    show(chosen, outcomes, answers)
    faults = [f"{ran.verdict}, and no answer: {key}" for key, ran in outcomes.items()
              if not ran.caught and key not in answers]  # fmt: skip
    faults += [f"{ANSWERS.name} answers a change that is not possible: {key}" for key in stale(answers)]
    for fault in faults:
        print(f"mutate: {fault}")
    return int(bool(faults))


def stale(answers: Mapping[str, str]) -> set[str]:
    """The changes with an answer whose line was edited or is gone."""
    possible = {change.key for folder in FOLDERS for change in changes_in(ROOT, folder)}
    return answers.keys() - possible


def show(
    chosen: Mapping[str, Sequence[Change]], outcomes: Mapping[str, Ran], answers: Mapping[str, str]
) -> None:
    """Prints a table of all changes, and how many of each folder were caught."""
    print("| change | verdict | by |\n|---|---|---|")
    for change in (one for some in chosen.values() for one in some):
        ran = outcomes[change.key]
        cells = (str(change), ran.verdict, ran.test or answers.get(change.key, ""))
        print("|", " | ".join(cell.replace("|", "\\|") for cell in cells), "|")
    for folder, some in chosen.items():
        print(f"{folder}: {sum(outcomes[one.key].caught for one in some)} of {len(some)} caught")
    print(f"{sum(ran.caught for ran in outcomes.values())} of {len(outcomes)} caught")


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutate", description=__doc__, allow_abbrev=False)
    parser.add_argument("--folder", action="append", help="whose lines are changed; default: all five")
    parser.add_argument("--tests", action="append", help="how paths of tests begin, one or more")
    parser.add_argument("--lines", type=int, default=12, help="of each folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes, each with a copy of the tree")
    options = parser.parse_args(argv)
    for folder in options.folder or ():
        if not f"{folder}/".startswith(tuple(f"{name}/" for name in FOLDERS)) or not (ROOT / folder).is_dir():
            parser.error(f"--folder {folder}: must be one of {', '.join(FOLDERS)}, or below one")
    return options


if __name__ == "__main__":
    sys.exit(main())
