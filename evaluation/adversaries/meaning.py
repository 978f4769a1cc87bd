"""How much of a text an attack leaves: words, and characters in a row."""

from difflib import SequenceMatcher


def words_kept(before: str, after: str) -> float:
    """Share of the words of `before` that `after` still has in the same order, by matching runs."""
    words = before.split()
    if not words:
        return 1.0
    runs = SequenceMatcher(None, words, after.split(), autojunk=False).get_matching_blocks()
    return sum(run.size for run in runs) / len(words)


def chrf(before: str, after: str) -> float:
    """chrF of `after` against `before`, 0 to 100 (Popovic 2015; sacrebleu's defaults)."""
    from sacrebleu import sentence_chrf  # optional: `--help` works without it

    return float(sentence_chrf(after, [before]).score)
