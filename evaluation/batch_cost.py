"""What generating a cell cost: time and rows of forward passes, over all texts of its batches together."""

from collections.abc import Callable, Sequence

from evaluation.completions import Completion

PromptRows = Callable[[int], int]
"""Tokens of the prompt of a text, by the text's number."""


def seconds_per_thousand(texts: Sequence[Completion]) -> float:
    """Wall time per 1,000 tokens."""
    return 1000 * sum(text.seconds for text in texts) / sum(len(text.token_ids) for text in texts)


def rows_per_token(texts: Sequence[Completion], prompt_rows: PromptRows) -> float:
    """Rows of forward passes per generated token, without the prompts'."""
    prompts = sum(prompt_rows(text.index) for text in texts)
    return (sum(text.rows for text in texts) - prompts) / sum(len(text.token_ids) for text in texts)
