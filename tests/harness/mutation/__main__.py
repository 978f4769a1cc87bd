"""Mutation testing of sampled lines: `python -m tests.harness.mutation`, or `make mutate MUTATE_ARGS=...`.

Takes some lines of each folder, changes one at a time in a copy of the tree, and runs the tests that cover
it. What is known from an earlier run is kept in build/mutation. Ends with 1 where a change that nobody caught
has no answer in tests/mutation_answers.yml, or where fewer than `--least` percent were caught.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.harness.mutation.changes import by_line, changes_in, sample
from tests.harness.mutation.report import Row, read_answers, show, stale
from tests.harness.mutation.session import Session
from tests.harness.mutation.tree import ROOT

FOLDERS = ("gen_service/engine", "gen_service/decoding", "shared/watermark", "shared/vault", "detect_service")
_UNIT = (
    "api_gen", "audit", "cli", "decoding", "detect", "engine", "http", "keys", "public",
    "shared",
)  # fmt: skip
TESTS = (*(f"tests/unit/{name}/" for name in (*_UNIT, "watermark")), "tests/property/", "tests/contract/")
ANSWERS = ROOT / "tests/mutation_answers.yml"


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    options = _options(argv)
    os.environ["OMP_NUM_THREADS"] = "1"
    folders = options.folder or FOLDERS
    with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
        try:
            with Session(Path(temporary), options.jobs) as session:
                changes = {folder: changes_in(session.snapshot, folder) for folder in folders}
                chosen = {
                    folder: sample(found, options.lines, options.seed) for folder, found in changes.items()
                }
                covered = session.cover(tuple(options.tests or TESTS), FOLDERS)
                every = [change for some in chosen.values() for change in some]
                outcomes = session.attempt(every, covered, options.most_seconds, fresh=options.fresh)
                possible = {
                    change.key for folder in FOLDERS for change in changes_in(session.snapshot, folder)
                }
        except KeyboardInterrupt:
            print("mutate: stopped; the same command goes on from here", file=sys.stderr)
            return 130
    answers = read_answers(ANSWERS)
    reasons = {answer.key: answer.reason for answer in answers}
    rows = [
        Row(folder, change, outcomes[change.key], reasons.get(change.key, ""))
        for folder, some in chosen.items()
        for change in some
    ]
    good = show(rows, {folder: len(by_line(found)) for folder, found in changes.items()}, options.least)
    old = stale(answers, possible)
    for answer in old:
        print(f"mutate: {ANSWERS.name} answers a change that is not possible any more: {answer.key}")
    return int(not good or bool(old))


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutate", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--folder", action="append", help="whose lines are changed, one or more; default: all five"
    )
    parser.add_argument("--tests", action="append", help="how paths of tests begin, one or more")
    parser.add_argument("--lines", type=int, default=12, help="of each folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes, each with a copy of the tree")
    parser.add_argument("--most-seconds", type=float, default=60.0, help="of tests for one change")
    parser.add_argument("--fresh", action="store_true", help="try again what an earlier run found")
    parser.add_argument("--least", type=float, default=90.0, help="percent that must be caught")
    options = parser.parse_args(argv)
    for folder in options.folder or ():
        if not f"{folder}/".startswith(tuple(f"{name}/" for name in FOLDERS)) or not (ROOT / folder).is_dir():
            parser.error(f"--folder {folder}: must be one of {', '.join(FOLDERS)}, or below one")
    return options


if __name__ == "__main__":
    sys.exit(main())
