"""A number with its noun."""


def counted(number: int, noun: str) -> str:
    """ "1 key", "2 keys", "1,000 keys"; the noun's plural ends with s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
