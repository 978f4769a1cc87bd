"""HTML pages."""

from html.parser import HTMLParser


class _HtmlParagraphs(HTMLParser):
    """Collects the text between block tags, leaving out what is not running text."""

    INLINE = frozenset(
        """
        a abbr acronym b bdi big cite code dfn em font i ins kbd mark q s samp small span strong sub sup
        tt u var
        """.split()  # noqa: SIM905
    )
    SKIPPED = frozenset(
        """
        script style pre nav head header footer table h1 h2 h3 h4 h5 h6 dt button
        """.split()  # noqa: SIM905
    )

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.paragraphs: list[str] = []
        self._pieces: list[str] = []
        self._skipping: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag in self.SKIPPED:
            self._skipping.append(tag)
        if tag not in self.INLINE:
            self.flush()

    def handle_endtag(self, tag: str) -> None:
        if tag in self._skipping:
            # Closes unbalanced inner tags too, so that one missing end tag costs no more than its parent.
            del self._skipping[self._skipping.index(tag) :]
        if tag not in self.INLINE:
            self.flush()

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self._pieces.append(data)

    def flush(self) -> None:
        if self._pieces:
            self.paragraphs.append("".join(self._pieces))
            self._pieces = []


def from_html(text: str) -> list[str]:
    """Running text of an HTML page; headings, tables, listings and navigation are left out."""
    parser = _HtmlParagraphs()
    parser.feed(text)
    parser.close()
    parser.flush()
    return parser.paragraphs
