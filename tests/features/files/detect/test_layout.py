"""How what a page shows is written down: as a language model would have written it."""

from collections.abc import Callable

import pytest

from ttmark.detect_service.features.files.text.layout import Block, TextRun, markdown, pieces


def paragraph(text: str, **more: object) -> Block:
    return Block(runs=[TextRun(text)], **more)  # type: ignore[arg-type]


def item(text: str, marker: str = "-", level: int = 1, **more: object) -> Block:
    return paragraph(text, kind="item", marker=marker, level=level, **more)


LONG = (
    "An item of a list that goes on for longer than a line of a page, as those with a reason beside them do."
)

CASES: dict[str, tuple[list[Block], str]] = {
    "paragraphs": ([paragraph("One."), paragraph("Two.\nand on")], "One.\n\nTwo.\nand on"),
    "a heading": (
        [paragraph("A\ntitle ", kind="heading", level=2), paragraph("Text.")],
        "## A title\n\nText.",
    ),
    "lines without space": ([paragraph("One."), paragraph("Two.", gap=False)], "One.\nTwo."),
    "typed text": (
        [paragraph("Do:"), paragraph(""), paragraph("1. This"), paragraph("2. That"), paragraph(" ")],
        "Do:\n\n1. This\n2. That",
    ),
    "one empty line among many paragraphs": (
        [*map(paragraph, "abcdefg"), paragraph(""), paragraph("h")],
        "a\n\nb\n\nc\n\nd\n\ne\n\nf\n\ng\n\nh",
    ),
    "bullets": ([paragraph("All:"), item("one"), item("two")], "All:\n\n- one\n- two"),
    "short items": ([item("one", "1."), item("two", "2.")], "1. one\n2. two"),
    "long items": ([item(LONG, "9."), item(LONG, "10.")], f"9. {LONG}\n\n10. {LONG}"),
    "long items that the page shows close": (
        [item(LONG, "a)"), item(LONG, "b)", gap=False)],
        f"a) {LONG}\nb) {LONG}",
    ),
    "lists in lists": (
        [item("a", "1."), item("b", level=2), item("c", level=3), paragraph("d", level=2), item("e", "2.")],
        "1. a\n   - b\n     - c\n\n     d\n\n2. e",
    ),
    "a list that begins deep": ([item("a", level=3), item("b", level=2), item("c")], "- a\n  - b\n- c"),
    "two lists": (
        [item("a", "10."), item("b", level=2), paragraph("and"), item("c", level=2)],
        "10. a\n    - b\n\nand\n\n- c",
    ),
    "rows": (
        [paragraph("a\tb", kind="row"), paragraph("c\td", kind="row"), paragraph("End.")],
        "a\tb\nc\td\n\nEnd.",
    ),
    "code": (
        [paragraph("So:"), paragraph("\nif x:\n    y\n", kind="pre", fence="python")],
        "So:\n\n```python\nif x:\n    y\n```",
    ),
    "preformatted": ([paragraph("  a\n\n b", kind="pre")], "  a\n\n b"),
    "quotations": (
        [paragraph("a\nb", quotes=1), paragraph("c", quotes=2), paragraph("d")],
        "> a\n> b\n>\n>> c\n\nd",
    ),
    "emphasis": (
        [
            Block(
                runs=[
                    TextRun("A "),
                    TextRun("bold", bold=True),
                    TextRun(" "),
                    TextRun("word ", bold=True),
                    TextRun("or", bold=True, italic=True),
                    TextRun(" two", italic=True),
                    TextRun(" "),
                    TextRun("f(x)", code=True, bold=True),
                    TextRun(" *as* typed"),
                ]
            )
        ],
        "A **bold word** ***or*** *two* `f(x)` *as* typed",
    ),
    "emphasis across a line end": (
        [Block(runs=[TextRun("a\n b", bold=True), TextRun("\n"), TextRun("  ", italic=True)])],
        "**a**\n **b**",
    ),
    "a bold heading": ([Block(runs=[TextRun("Title", bold=True)], kind="heading", level=1)], "# Title"),
    "nothing": ([paragraph(""), Block(runs=[])], ""),
}


@pytest.mark.parametrize(("blocks", "written"), CASES.values(), ids=CASES)
def test_a_page_is_written_as_a_model_would(blocks: list[Block], written: str) -> None:
    assert markdown(blocks) == written
    assert len(list(pieces(blocks))) == sum(bool(block.text.strip()) for block in blocks)


@pytest.mark.parametrize("nested", [item, lambda text, level: paragraph(text, quotes=level)])
def test_what_is_nested_without_end_is_not_indented_without_end(nested: Callable[..., Block]) -> None:
    assert len(markdown([nested("x", level=level) for level in range(1, 1000)])) < 1000 * 30
