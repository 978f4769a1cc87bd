"""`python -m evaluation.core <experiment>`: prints its result as Markdown."""

import argparse
import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from evaluation.core import false_positives
from evaluation.core.distortion import distortion_table, theorem_table
from evaluation.core.edits import PAIRED_LENGTHS, edits_table, paired_table
from evaluation.core.golden import write_golden
from evaluation.core.power import calibration_table, power_table, weighted_table
from evaluation.core.rates import pooled_table, write_rows
from evaluation.core.scan_tuning import tuning_table
from evaluation.core.search import search_tables
from evaluation.core.spans import spans_table
from evaluation.core.speed import speed_table
from evaluation.core.tables import write_table
from evaluation.core.tail_check import aligned_tail_table, scan_tail_table
from evaluation.core.text_false_positives import LEVELS as TEXT_LEVELS
from evaluation.core.text_false_positives import text_counts
from shared.watermark import Watermark, scheme_names

Options = argparse.Namespace


def _tables(options: Options) -> str:
    for block_size in options.block_sizes:
        for scheme in options.schemes:
            write_table(Watermark(scheme, block_size), options.seed)
    return "Tables written."


def _golden(options: Options) -> str:
    del options
    write_golden()
    return "Golden vectors written."


def _search_rates(options: Options) -> str:
    counts = list(
        false_positives.search_counts(
            options.schemes, options.block_sizes, options.trials, options.window_trials, options.seed
        )
    )
    if options.rows:
        write_rows(counts, false_positives.SEARCH_LEVELS, options.rows)
    return pooled_table(counts, false_positives.SEARCH_LEVELS)


def _text_rates(options: Options) -> str:
    counts = list(text_counts(options.schemes, options.documents, options.seed))
    if options.rows:
        write_rows(counts, TEXT_LEVELS, options.rows)
    return pooled_table(counts, TEXT_LEVELS, by_text=True)


EXPERIMENTS: Mapping[str, Callable[[Options], str]] = {
    "tables": _tables,
    "golden": _golden,
    "power": lambda o: power_table(o.schemes, o.documents, o.seed),
    "power-weighted": lambda o: weighted_table(o.documents, o.seed),
    "search": lambda o: search_tables(o.schemes, o.documents, o.seed),
    "calibration": lambda o: calibration_table(o.documents, o.seed),
    "spans": lambda o: spans_table(o.schemes, o.block_sizes, o.mean_score, o.documents, o.seed),
    "scan-tuning": lambda o: tuning_table(o.schemes, o.mean_score, o.documents, o.seed),
    "distortion": lambda o: distortion_table(o.schemes, o.block_sizes, o.keys, o.seed),
    "theorem": lambda o: theorem_table(o.keys, o.seed),
    "fpr-direct": lambda o: false_positives.direct_table(o.schemes, o.trials, o.seed),
    "fpr-search": _search_rates,
    "fpr-texts": _text_rates,
    "aligned-tail": lambda o: aligned_tail_table(o.schemes, o.block_sizes, o.seed),
    "scan-tail": lambda o: scan_tail_table(o.schemes, o.block_sizes, o.trials, o.seed),
    "speed": lambda o: speed_table(o.schemes, o.seed),
    "edits-paired": lambda o: paired_table(o.schemes, PAIRED_LENGTHS, o.documents, o.seed),
    "edits": lambda o: edits_table(o.schemes, o.tokens, o.documents, o.seed),
}


def main() -> int:
    """Run one experiment and print its table."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.core", description=__doc__)
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--schemes", nargs="+", choices=scheme_names(), default=list(scheme_names()))
    parser.add_argument("--block-sizes", nargs="+", type=int, choices=(1, 2, 3), default=[2, 1, 3])
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--window-trials", type=int, default=250_000, help="of WaterSeeker")
    parser.add_argument("--rows", type=Path, help="write every row behind a pooled table to this JSON file")
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--mean-score", type=float, default=0.6, help="of a pair, in the span")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    sys.stdout.write(EXPERIMENTS[options.experiment](options) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
