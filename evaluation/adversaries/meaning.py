"""How much of a text an attack leaves."""

from difflib import SequenceMatcher


def words_kept(before: str, after: str) -> float:
    """Share of the words of `before` that `after` still has in the same order, by matching runs."""
    words = before.split()
    if not words:
        return 1.0
    runs = SequenceMatcher(None, words, after.split(), autojunk=False).get_matching_blocks()
    return sum(run.size for run in runs) / len(words)
