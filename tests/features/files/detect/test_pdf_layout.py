"""A PDF is read as its pages show it: a table of layouts, each set by a few lines of PDF."""

import sys

import pytest

from tests.harness.hostile_files.pdf import stream
from tests.harness.set_pages import LEADING, LEFT, TOP, Drawn, para, pdf, put, width
from ttmark.detect_service.features.files.formats.readers_by_format import extract_text

FERRY = (
    "The ferry was late again this morning, and nobody at the gate could say why. It came at noon with "
    "bread, two goats and a piano for the school in the upper village, and half of the people who had waited "
    "went home."
)
QUAY = (
    "We stayed until the last box was on the quay. The captain told us that a rope had been caught in the "
    "wheel near the northern lights, where the water is shallow, and that it took four men and a saw to cut "
    "it."
)


def below(drawn: Drawn, top: float = TOP, gap: float = 0.0) -> float:
    return top - LEADING * len(drawn) - gap


def two(gap: float, **how: object) -> Drawn:
    drawn = para(FERRY, **how)  # type: ignore[arg-type]
    return drawn + para(QUAY, below(drawn, gap=gap), **how)  # type: ignore[arg-type]


def columns(justified: bool) -> Drawn:
    """A title and two columns that are read one after the other."""
    title = [put(LEFT, 760, "An island in the north", "B", 18)]
    return [
        *title,
        *para(FERRY, 700, 60, 200, justified=justified),
        *para(QUAY, 703, 285, 200, justified=justified),
    ]


def items() -> Drawn:
    """A list whose second item has two lines and a list of its own, with bullets that are drawn."""
    dot = "{0} {1} m {0} {2} l {3} {2} l {3} {1} l h f"
    return [
        put(72, 700, "Things to take along:"),
        put(80, 686, "9."), put(96, 686, "A rope"),
        put(74.5, 672, "10."), put(96, 672, "A coat that is long enough for two people, with"),
        put(96, 658, "buttons:"),
        put(114, 644, "of horn"), dot.format(102, 646, 650, 106),
        put(114, 630, "of wood"), dot.format(102, 632, 636, 106),
        put(74.5, 602, "11."), put(96, 602, "A lamp"),
    ]  # fmt: skip


def pages() -> list[Drawn]:
    lines = para(f"{FERRY} {QUAY}")
    made = []
    for number, part in enumerate((lines[:4], lines[4:]), 1):
        head, foot = put(72, 800, "The ferry"), put(290, 40, f"Page {number}")
        made.append([head, *part, foot])
    return made


def side_by_side(*parts: tuple[str, str]) -> Drawn:
    drawn, x = [], LEFT
    for text, font in parts:
        drawn.append(put(x, 700, text, font))
        x += width(text, font)
    return drawn


BROKEN = (
    "A rope was caught in the wheel near the north-",
    "ern lights, where a well-known man saw a well-",
    "known one.",
)
HYPHENATED = (
    "A rope was caught in the wheel near the northern lights, where a well-known man saw a well-known one."
)


def hyphens() -> Drawn:
    return [put(72, 700 - LEADING * place, line) for place, line in enumerate(BROKEN)]


def field(flags: int) -> list[bytes]:
    """Objects 10 and 11, or 12 and 13 if it is hidden: a field, and what it shows in half of its size."""
    number = 10 + flags
    shown = f"<< /Subtype /Widget /F {flags} /Rect [110 690 310 730] /AP << /N {number + 1} 0 R >> >>"
    form = b"/Subtype /Form /BBox [0 0 100 20] /Resources << /Font << /F 3 0 R >> >> "
    return [shown.encode(), stream(b"BT /F 5.5 Tf 0 5 Td (Ann Lee) Tj ET", form)]


def filled(flags: int, *, draws: bytes = b"") -> list[bytes]:
    """Objects 10 and 11: a field with a value whose appearance draws no text, or `draws` it."""
    shown = (
        f"<< /Subtype /Widget /Parent << /FT /Tx /Ff {flags} >> /V <FEFF0041006E006E0020004C00E9> "
        "/Rect [110 690 310 710] /AP << /N 11 0 R >> >>"
    )
    form = b"/Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /F 3 0 R >> >> "
    return [shown.encode(), stream(b"/Tx BMC " + draws + b" EMC", form)]


def own_codes(said: str, widths: str = "") -> list[bytes]:
    """Objects 10 to 14: a form in a font with a table of codes of its own, as WeasyPrint makes them."""
    space = b"1 begincodespacerange <0000> <FFFF> endcodespacerange 1 "
    text = said.encode("utf-16-be").hex().encode()
    return [
        stream(b"BT /T 11 Tf 72 700 Td <%b> Tj ET" % text,
               b"/Subtype /Form /BBox [0 0 900 900] /Resources << /Font << /T 11 0 R >> >> "),
        b"<< /Type /Font /Subtype /Type0 /BaseFont /T /Encoding 12 0 R /ToUnicode 13 0 R "
        b"/DescendantFonts [14 0 R] >>",
        stream(b"begincmap " + space + b"begincidrange <0020> <007E> 32 endcidrange endcmap",
               b"/Type /CMap /CMapName /Own "),
        stream(b"begincmap " + space + b"beginbfrange <0020> <007E> <0020> endbfrange endcmap"),
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /T /DW 500 %b /FontDescriptor "
        b"<< /FontName /T /Flags 4 >> /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) >> >>"
        % widths.encode(),
    ]  # fmt: skip


ROWS = [("Port", "Time", "Boats"), ("Upper village", "12:30", "2"), ("The lights", "14:05", "11")]
HEBREW = "".join(f"<{code:02x}> <{0x5D0 + code - 0x61:04x}> " for code in range(0x61, 0x7B))
LAYOUTS: dict[str, tuple[bytes, str]] = {
    "ragged": (pdf(two(8)), f"{FERRY}\n\n{QUAY}"),
    "ragged without space between": (pdf(two(0)), f"{FERRY}\n{QUAY}"),
    "justified": (pdf(two(8, justified=True)), f"{FERRY}\n\n{QUAY}"),
    "first lines indented": (pdf(two(0, justified=True, first=15)), f"{FERRY}\n\n{QUAY}"),
    "narrower than the rest": (
        pdf([*para(FERRY), *para(QUAY, 600, 92, 160, justified=True)]), f"{FERRY}\n\n{QUAY}"
    ),
    "tabs for blanks": (pdf(two(8), characters="1 beginbfchar <20> <0009> endbfchar"), f"{FERRY}\n\n{QUAY}"),
    "two columns": (pdf(columns(justified=True)), f"## An island in the north\n\n{FERRY}\n\n{QUAY}"),
    "two ragged columns": (pdf(columns(justified=False)), f"## An island in the north\n\n{FERRY}\n\n{QUAY}"),
    "a list in two columns": (
        pdf([put(72 + 220 * (number // 4) + 18 * place, 700 - LEADING * (number % 4), text)
             for number, word in enumerate(["Bread", "Goats", "Pianos", "Rope", "Coats", "Buttons", "Lamps"])
             for place, text in enumerate((f"{number + 1}.", word))]),
        "1. Bread\n2. Goats\n3. Pianos\n4. Rope\n5. Coats\n6. Buttons\n7. Lamps",
    ),
    "a list": (
        pdf(items()),
        "Things to take along:\n9. A rope\n10. A coat that is long enough for two people, with buttons:\n"
        "    - of horn\n    - of wood\n\n11. A lamp",
    ),
    "over a page": (pdf(*pages()), f"The ferry\n\n{FERRY} {QUAY}\n\nPage 1\n\nThe ferry\n\nPage 2"),
    "bold, italic and monospaced": (
        pdf([*side_by_side(("A ", "F"), ("bold word", "B"), (", an ", "F"), ("oblique", "I"),
                           (" one and ", "F"), ("code()", "C"), (".", "F")), *para(FERRY, 660)]),
        f"A **bold word**, an *oblique* one and `code()`.\n\n{FERRY}",
    ),
    "bold by a font that is called medium": (
        pdf([put(72, 700, "Bring "), put(72 + width("Bring "), 700, "a coat", "M"), *para(FERRY, 660)]),
        f"Bring **a coat**\n\n{FERRY}",
    ),
    "a program": (
        pdf([*para(FERRY), put(72, 600, "def f():", "C"), put(98.4, 586, "return 1", "C"), *para(QUAY, 550)]),
        f"{FERRY}\n\n```\ndef f():\n    return 1\n```\n\n{QUAY}",
    ),
    "a table": (
        pdf([put(72 + 120 * place, 700 - 18 * number, cell) for number, row in enumerate(ROWS)
             for place, cell in enumerate(row)]),
        "\n".join("\t".join(row) for row in ROWS),
    ),
    "turned": (
        pdf(["BT /F 11 Tf 0 1 -1 0 40 400 Tm (Seen with the head turned.) Tj ET", *para(FERRY)]),
        f"{FERRY}\n\nSeen with the head turned.",
    ),
    "kerned": (
        pdf(["BT /F 11 Tf 1 0 0 1 72 700 Tm [(A) 90 (V) 70 (ATAR ) -20 (of) -250 (W) 80 (arhol)] TJ ET"]),
        "AVATAR of Warhol",
    ),
    "drawn twice for weight": (pdf([put(72, 700, "A shadow"), put(72.3, 700, "A shadow")]), "A shadow"),
    "drawn twice for weight, in other parts": (
        pdf([put(72, 700, "A shadow"), put(72.3, 700, "A shadow:"), put(130, 700, "12:"),
             put(130 + width("12"), 700.2, ":")]),
        "A shadow: 12:",
    ),
    "beside the page": (
        pdf([put(72, 700, "Seen"), put(72, 900, "Not seen"), put(-90, 700, "Nor this")]), "Seen"
    ),
    "broken words": (pdf(hyphens()), HYPHENATED),
    "broken words, U+2010": (pdf(hyphens(), characters="1 beginbfchar <2D> <2010> endbfchar"),
                             HYPHENATED.replace("-", "\u2010")),
    "a form that is filled in": (
        pdf([put(72, 700, "Name:")], entries="/Annots [10 0 R 12 0 R]", more=field(0) + field(2)),
        "Name: Ann Lee",
    ),
    "a field whose value nobody drew": (
        pdf([put(72, 696, "Name:")], entries="/Annots [10 0 R]", more=filled(0)), "Name: Ann Lé"
    ),
    "a list to choose from": (
        pdf([put(72, 696, "Name:")], entries="/Annots [10 0 R]",
            more=[b"<< /Subtype /Widget /FT /Ch /Opt [(Ann) [(b) (Bea)] (Cid)] /Rect [110 680 310 710] >>"]),
        "Name: Ann\nBea",
    ),
    "a field for a password": (
        pdf([put(72, 700, "Name:")], entries="/Annots [10 0 R]", more=filled(8192)), "Name:"
    ),
    "a field that draws its value": (
        pdf([put(72, 700, "Name:")], entries="/Annots [10 0 R]",
            more=filled(0, draws=b"BT /F 11 Tf 0 6 Td (Ann Lee) Tj ET")),
        "Name: Ann Lee",
    ),
    "raised and lowered letters": (
        pdf([put(72, 700, "on the 10"), put(72 + width("on the 10"), 705.6, "th", size=7),
             put(72 + width("on the 10") + width("th", size=7), 700, " of H"),
             put(72 + width("on the 10 of H") + width("th", size=7), 696.8, "2", size=6),
             put(72 + width("on the 10 of H") + width("th", size=7) + width("2", size=6), 700, "O")]),
        "on the 10th of H2O",
    ),
    "small type under a heading": (
        pdf([put(72, 700, "Big", size=90), put(72, 664, "Small", size=11), put(240, 700, "Type", size=90),
             put(105, 664, "Type", size=11), *para(FERRY, 600)]),
        f"# Big Type\n\nSmall Type\n\n{FERRY}",
    ),
    "a blank without width": (
        pdf(["/X Do"], forms="/X 10 0 R", more=own_codes("BUTTO N", "/W [32 [0]]")), "BUTTON"
    ),
    "strings and pictures": (
        pdf([r"BT /F 11 Tf 72 700 Td (One \(two\) (three) t\157\ \words) Tj ET BI /W 1 /H 1 ID (EI( EI",
             "BT /F#20 11 Tf /F 11 Tf 72 650 Td [<66 6F> 9 <7>] TJ ET"]),
        "One (two) (three) to words\n\nfop",
    ),
    "a form that draws itself": (
        pdf(["/X Do", put(72, 700, "Drawn after it:")], forms="/X 10 0 R", more=[stream(
            b"BT /F 11 Tf 72 700 Td (A form) Tj ET /X Do",
            b"/Subtype /Form /BBox [0 0 900 900] /Matrix [1 0 0 1 150 0] ")]),
        "Drawn after it:\tA form",
    ),
    "codes by a table in the file": (
        pdf(["/X Do"], forms="/X 10 0 R", more=own_codes("A coded word")), "A coded word"
    ),
    "ligatures": (
        pdf(["BT /F 11 Tf 1 0 0 1 72 700 Tm (of\\001) Tj ET", put(72 + width("of\ufb01"), 700, "ce hours")],
            characters="1 beginbfchar <01> <00660069> endbfchar"),
        "office hours",
    ),
    "right to left": (
        pdf([put(72, 700, "dcb a 42 gfe")], characters=f"26 beginbfchar {HEBREW} endbfchar"),
        "\u05d4\u05d5\u05d6 42 \u05d0 \u05d1\u05d2\u05d3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_page_is_read_as_it_looks(name: str) -> None:
    content, expected = LAYOUTS[name]
    assert extract_text("a.pdf", content).text == expected


def test_it_is_told_where_pages_begin() -> None:
    first, second = pages()
    found = extract_text("a.pdf", pdf(first, ["q Q"], second, ["q Q"]))
    assert [found.text[at:].split()[0] for at in found.pages] == ["The", "stayed", "stayed"]


def test_what_could_not_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    picture = stream(b"\x00", b"/Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /G ")
    shown = pdf([put(72, 700, "A\x02B")], ["/X Do"], ["q Q"], forms="/X 14 0 R", more=[picture])
    found = extract_text("a.pdf", shown)
    assert found.text == "A\ufffdB"
    pictures, letters = (
        "1 of 3 pages are pictures: their text, if any, is not read.",
        "Letters without a character",
    )
    assert found.unread == f"{pictures} {letters} in the file: 1."
