"""`python -m evaluation.core <experiment>`: prints its result as Markdown."""

import argparse
import logging
import sys

from evaluation.core.golden import write_golden
from evaluation.core.tables import write_table
from shared.watermark import Watermark, scheme_names


def _tables(options: argparse.Namespace) -> None:
    """Build the null tables of the default parameters of each scheme."""
    for block_size in options.block_sizes:
        for scheme in options.schemes:
            write_table(Watermark(scheme, block_size), options.seed)


def _golden(options: argparse.Namespace) -> None:
    """Write the golden vectors of the tests."""
    del options
    write_golden()


EXPERIMENTS = {"tables": _tables, "golden": _golden}


def main() -> int:
    """Run one experiment."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.core", description=__doc__)
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--schemes", nargs="+", choices=scheme_names(), default=list(scheme_names()))
    parser.add_argument("--block-sizes", nargs="+", type=int, choices=(1, 2, 3), default=[2, 1, 3])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    EXPERIMENTS[options.experiment](options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
