"""How much of an engine's work readings may take while something is written."""

from ttmark.gen_service.engine.fair_share import FairShare

_WRITING, _READING = "writing", "reading"


class ReadingShare:
    """Rows that were written and read, weighted so that readings stay within their share.

    While something is written, readings get at most `share` times the rows that were written since they came
    in: they spend what writing has earned them, and neither saves up while the other is away. While nothing
    is written they take whatever there is.

    Args:
        share: above 0.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._rows = FairShare({_READING: share})

    @property
    def credit(self) -> float:
        """Rows that may be read now, while something is written."""
        return (self._rows.level(_WRITING) - self._rows.level(_READING)) * self._share

    def write(self, rows: int) -> None:
        """Counts rows that are written; negative ones were planned and given up."""
        self._rows.serve(_WRITING, rows)

    def read(self, rows: int) -> None:
        """Counts rows that are read."""
        self._rows.serve(_READING, rows)

    def settle(self, *, writing: bool, reading: bool) -> None:
        """A pass is planned; whether there is something in hand that is written, and that is read."""
        self._rows.settle([kind for kind, wanted in ((_WRITING, writing), (_READING, reading)) if wanted])
