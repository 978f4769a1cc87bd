"""What word processors' files show: every word of the page, numbers of lists, emphasis, space."""

import pytest

from tests.harness.hostile_files.documents import odt
from tests.harness.hostile_files.docx import cell, package, table
from ttmark.detect_service.features.files.formats.readers_by_format import extract_text

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_BOX = (
    '<w:r><w:pict><v:shape xmlns:v="urn:schemas-microsoft-com:vml"><v:textbox>'
    "<w:txbxContent>{}</w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
)
_MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'


def run(text: str, look: str = "") -> str:
    return f'<w:r><w:rPr>{look}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def para(inner: str, look: str = "") -> str:
    return f"<w:p><w:pPr>{look}</w:pPr>{inner}</w:p>"


def listed(text: str, level: int = 0, number: int = 1) -> str:
    return para(run(text), f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


def level(at: int, form: str, text: str, more: str = "") -> str:
    return (
        f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


NUMBERING = (
    f'<w:numbering xmlns:w="{_W}"><w:abstractNum w:abstractNumId="7">'
    + level(0, "decimal", "%1.")
    + level(1, "lowerLetter", "%2)", '<w:pStyle w:val="Lettered"/>')
    + level(2, "bullet", "\uf0b7")
    + level(3, "upperRoman", "%1.%4")
    + level(4, "bullet", " ")
    + '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2">'
    '<w:abstractNumId w:val="7"/>'
    '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num></w:numbering>'
)
STYLES = (
    f'<w:styles xmlns:w="{_W}"><w:style w:type="paragraph" w:styleId="Listed"><w:pPr><w:numPr>'
    '<w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    '<w:style w:type="paragraph" w:styleId="Below"><w:basedOn w:val="Listed"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Lettered"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr>'
    "</w:pPr></w:style>"
    '<w:style w:type="paragraph" w:styleId="H2"><w:name w:val="heading 2"/><w:rPr><w:b/></w:rPr></w:style>'
    '<w:style w:type="character" w:styleId="S"><w:basedOn w:val="S"/><w:rPr><w:b/></w:rPr></w:style>'
    '<w:style w:type="paragraph" w:styleId="Code"><w:name w:val="Source Code"/></w:style></w:styles>'
)


def styled(name: str, text: str) -> str:
    return para(run(text), f'<w:pStyle w:val="{name}"/>')


DOCX = {
    "tracked insertion": (
        para(run("a ") + f"<w:ins>{run('b')}</w:ins><w:del><w:r><w:delText>c</w:delText></w:r></w:del>"),
        "a b",
    ),
    "tracked move": (para(f"<w:moveTo>{run('b')}</w:moveTo><w:moveFrom>{run('c')}</w:moveFrom>"), "b"),
    "a paragraph's end deleted": (para(run("a"), "<w:rPr><w:del/></w:rPr>") + para(run("b")), "ab"),
    "a row deleted": (
        table(1, cell()).replace("<w:tr>", "<w:tr><w:trPr><w:del/></w:trPr>") + para(run("b")),
        "b",
    ),
    "content control around a paragraph": (
        f"<w:sdt><w:sdtContent>{para(run('b'))}</w:sdtContent></w:sdt>",
        "b",
    ),
    "custom XML around a paragraph": (f"<w:customXml>{para(run('b'))}</w:customXml>", "b"),
    "content control in a paragraph": (
        para(run("a ") + f"<w:sdt><w:sdtContent>{run('b')}</w:sdtContent></w:sdt>"),
        "a b",
    ),
    "content control around a cell": (
        table(1, f"<w:sdt><w:sdtContent>{cell()}</w:sdtContent></w:sdt>" + cell()),
        "text\ttext",
    ),
    "smart tag, field, custom XML": (
        para(
            f"<w:smartTag>{run('a')}</w:smartTag><w:fldSimple>{run('b')}</w:fldSimple>"
            f"<w:customXml>{run('c')}</w:customXml>"
        ),
        "abc",
    ),
    "text box": (para(run("a") + _BOX.format(para(run("b"))) + run("c")), "ac\n\nb"),
    "text box in two forms": (
        para(
            f"<w:r><mc:AlternateContent {_MC}><mc:Choice><w:txbxContent>{para(run('b'))}"
            "</w:txbxContent></mc:Choice>"
            f"<mc:Fallback>{_BOX.format(para(run('b')))}</mc:Fallback></mc:AlternateContent></w:r>"
        ),
        "b",
    ),
    "initial": (para(run("O"), '<w:framePr w:dropCap="drop"/>') + para(run("nce")), "Once"),
    "ruby": (
        para(f"<w:r><w:ruby><w:rt>{run('x')}</w:rt><w:rubyBase>{run('b')}</w:rubyBase></w:ruby></w:r>"),
        "b",
    ),
    "hidden": (para(run("a") + run("b", "<w:vanish/>") + run("c", '<w:vanish w:val="0"/>')), "ac"),
    "formula": (
        para(
            '<m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:r>'
            "<m:t>x=1</m:t></m:r></m:oMath>"
        ),
        "x=1",
    ),
    "breaks": (
        para(
            '<w:r><w:t>a</w:t><w:br/><w:t>b</w:t><w:br w:type="page"/><w:tab/><w:noBreakHyphen/>'
            '<w:sym w:char="00E9"/></w:r>'
        ),
        "a\nb\t-é",
    ),
    "emphasis": (
        para(
            run("a ")
            + run("b", "<w:b/>")
            + run(" c", '<w:rStyle w:val="S"/>')
            + run(" d", "<w:i/>")
            + run(" e", '<w:b w:val="false"/>')
            + run(" f", '<w:rFonts w:ascii="Courier New"/>')
        ),
        "a **b c** *d* e `f`",
    ),
    "heading": (styled("H2", "a") + para(run("b")), "## a\n\nb"),
    "code": (para(run("a")) + styled("Code", "if x:") + styled("Code", "  y"), "a\n\n```\nif x:\n  y\n```"),
    "nothing but code": (styled("Code", "Dear Sir") + styled("Code", "Yours"), "Dear Sir\nYours"),
    "numbers": (
        listed("a")
        + listed("b", 1)
        + listed("c", 1)
        + listed("d", 2)
        + listed("e", 4)
        + listed("f")
        + listed("g", 1)
        + listed("h", 3)
        + listed("i", number=2)
        + listed("j", number=2)
        + listed("k", number=9),
        "1. a\n   a) b\n   b) c\n      - d\n        e\n2. f\n   a) g\n      2.I h\n5. i\n6. j\n\nk",
    ),
    "an item that holds nothing but a list": (listed("") + listed("a", 1), "1.\n   a) a"),
    "numbers by style": (
        styled("Listed", "a") + styled("Below", "b") + styled("Lettered", "c"),
        "1. a\n2. b\n   a) c",
    ),
    "a numbered heading": (listed("a").replace("<w:pPr>", '<w:pPr><w:pStyle w:val="H2"/>'), "## 1. a"),
    "paragraphs": (para(run("a" * 90)) + para(run("b" * 90)), "a" * 90 + "\n\n" + "b" * 90),
    "short lines without space": (
        para(run("a")) + para(run("b"), '<w:spacing w:before="200"/>') + para(run("c")),
        "a\n\nb\nc",
    ),
    "typed lines": (para(run("a")) + para("") + para(run("1. b")) + para(run("2. c")), "a\n\n1. b\n2. c"),
    "table with paragraphs in a cell": (
        table(1, cell(content=para(run("a")) + para(run("b"))) + cell()),
        "a\nb\ntext",
    ),
}


@pytest.mark.parametrize(("body", "text"), DOCX.values(), ids=DOCX)
def test_no_word_of_a_word_document_is_lost(body: str, text: str) -> None:
    parts = {"word/numbering.xml": NUMBERING, "word/styles.xml": STYLES}
    assert extract_text("a.docx", package(body, parts=parts)).text == text


def test_what_word_opens_is_opened() -> None:
    for content in (
        package(
            para(run("a")), parts={"word/_rels/document.xml.rels": '<R><Relationship Target="../NULL"/></R>'}
        ),
        package(para(run("a")), parts={"word/Numbering.xml": NUMBERING}),
    ):
        assert extract_text("a.docx", content).text == "a"


def test_notes_stand_behind_the_text_that_they_belong_to() -> None:
    note = f'<w:{{0}} xmlns:w="{_W}"><w:{{1}} w:type="separator">{para(run("x"))}</w:{{1}}>' + (
        f"<w:{{1}}>{para(run('{1}'))}</w:{{1}}></w:{{0}}>"
    )
    parts = {f"word/{name}s.xml": note.format(f"{name}s", name) for name in ("footnote", "endnote")}
    body = para(run("a") + "<w:r><w:footnoteReference/></w:r>" + run("b"))
    assert extract_text("a.docx", package(body, parts=parts)).text == "ab\nfootnote\nendnote"


ODT_STYLES = (
    '<style:default-style style:family="paragraph"><style:paragraph-properties fo:margin-top="0cm"/>'
    "</style:default-style>"
    '<style:style style:name="B" style:family="text"><style:text-properties fo:font-weight="bold"/>'
    "</style:style>"
    '<style:style style:name="Source_20_Text" style:family="text"/>'
    '<style:style style:name="BI" style:family="text" style:parent-style-name="B">'
    '<style:text-properties fo:font-style="italic"/></style:style>'
    '<style:style style:name="H" style:family="text"><style:text-properties text:display="none"/>'
    "</style:style>"
    '<style:style style:name="Preformatted_20_Text" style:family="paragraph"/>'
    '<style:style style:name="C" style:family="paragraph" style:parent-style-name="Preformatted_20_Text"/>'
    '<style:style style:name="Far" style:family="paragraph">'
    '<style:paragraph-properties fo:margin-top="0.5cm"/></style:style>'
    '<text:list-style style:name="L">'
    '<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>'
    '<text:list-level-style-number text:level="2" style:num-format="a" style:num-suffix=")" '
    'style:num-prefix="(" text:start-value="3"/>'
    '<text:list-level-style-bullet text:level="3" text:bullet-char="•"/>'
    '<text:list-level-style-number text:level="4" style:num-format="I" text:display-levels="4"/>'
    "</text:list-style>"
    '<text:outline-style><text:outline-level-style text:level="1" style:num-format=""/>'
    '<text:outline-level-style text:level="2" style:num-format="1" style:num-suffix="."/>'
    "</text:outline-style>"
)


def items(*inner: str, look: str = 'text:style-name="L"') -> str:
    return (
        f"<text:list {look}>"
        + "".join(f"<text:list-item>{each}</text:list-item>" for each in inner)
        + "</text:list>"
    )


def p(text: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style}">{text}</text:p>'


ODT = {
    "numbers": (
        items(
            p("a")
            + items(p("b"), p("c") + items(p("d") + p("e") + items(p("f"), look=""), look=""), look=""),
            items(p("g"), look=""),
            p("h"),
        ),
        "1. a\n   (c) b\n   (d) c\n       - d\n         e\n         1.d.1.I f\n   (e) g\n2. h",
    ),
    "lists that go on": (
        items(p("a"), look='text:style-name="L" xml:id="x"')
        + p("b")
        + items(p("c"))
        + items(p("d"), look='text:style-name="L" text:continue-numbering="true"')
        + items(p("e"), look='text:style-name="L" text:continue-list="x"')
        + '<text:list text:style-name="L"><text:list-header><text:p>f</text:p></text:list-header>'
        '<text:list-item text:start-value="9"><text:p>g</text:p></text:list-item></text:list>',
        "1. a\n\nb\n\n1. c\n2. d\n2. e\n   f\n9. g",
    ),
    "headings": (
        '<text:h text:outline-level="1">a</text:h><text:h text:outline-level="2">b</text:h><text:p>c'
        "</text:p>",
        "# a\n\n## 1. b\n\nc",
    ),
    "emphasis": (
        p(
            'a <text:span text:style-name="B">b</text:span> <text:span text:style-name="BI">c '
            '<text:span text:style-name="Source_20_Text">d</text:span></text:span>'
            '<text:span text:style-name="H">e</text:span>'
        ),
        "a **b** ***c*** `d`",
    ),
    "code": (
        p("a") + p('if x:<text:line-break/><text:s text:c="2"/>y', "C") + p("z", "C") + p("end"),
        "a\n\n```\nif x:\n  y\nz\n```\n\nend",
    ),
    "white space": (p(" a \n\t b<text:line-break/>c<text:tab/>d"), "a b\nc\td"),
    "frame": (p("a<draw:frame><draw:text-box><text:p>b</text:p></draw:text-box></draw:frame>c"), "ac\nb"),
    "ruby": (
        p("a<text:ruby><text:ruby-base>b</text:ruby-base><text:ruby-text>c</text:ruby-text></text:ruby>"),
        "ab",
    ),
    "space": (p("a") + p("b") + p("c", "Far"), "a\nb\n\nc"),
    "notes": (
        p(
            "a<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>b</text:p>"
            "</text:note-body></text:note>c"
        )
        + p("d"),
        "ac\nd\nb",
    ),
    "a list in an item without a number": (
        '<text:list text:style-name="L"><text:list-header><text:p>a</text:p>'
        + items(p("b"), look="")
        + f"</text:list-header><text:list-item>{p('c')}</text:list-item></text:list>",
        "a\n(c) b\n2. c",
    ),
}


@pytest.mark.parametrize(("body", "text"), ODT.values(), ids=ODT)
def test_an_opendocument_text_is_read_as_its_page_shows_it(body: str, text: str) -> None:
    assert extract_text("a.odt", odt(body, styles=ODT_STYLES)).text == text


RTF = {
    "emphasis": (
        r"{\fonttbl{\f0 Times;}{\f1\fmodern Courier New;}}a {\b b} \i c\i0  {\f1 d}\b  e\plain  f",
        "a **b** *c* `d` **e** f",
    ),
    "deleted and hidden": (r"a{\deleted b}{\v c}\v d\v0  e", "a e"),
    "characters beyond the basic plane": (
        r"\uc1\u-10179?\u-8704? \u128512? \u8364\'80",
        "\U0001f600 \U0001f600 €",
    ),
    "fallbacks": (r"\uc2\u8211\endash x{\uc0\u8364}\u233\'c3\'a9!", "–€é!"),
    "a Mac's file": (r"\mac caf\'8e", "café"),
    "a Mac's file by its code page": (
        r"\ansicpg10000 caf\'8e\
x",
        "café\nx",
    ),
    "code pages of fonts": (
        r"{\fonttbl{\f0\fcharset204 Arial;}{\f1\fcharset128 Mincho;}}\f0\'cf\'ee\f1\'93\'fa",
        "По日",
    ),
    "groups that pages do not show": (
        r"a{\*\generator x;}{\info{\title x}}{\header x}{\pict 00ff}"
        r"{\field{\*\fldinst x}{\fldrslt b}}",
        "ab",
    ),
    "notes": (
        r"a{\footnote\pard\plain\chftn b\par c}d\par\intbl f{\footnote e}\cell\row\pard g",
        "ad\nf\ng\n\nb\nc\ne",
    ),
    "two forms of the same": (r"{\upr{x}{\*\ud{\u233?}}}", "é"),
    "bytes": (r"a\bin3 {{{b", "ab"),
    "text box": (r"a{\shp{\*\shpinst{\sp{\sn x}{\sv x}}{\shptxt b\par}}{\shprslt x}}c\par", "b\nac"),
    "heading": (
        r"{\stylesheet{\s0 Normal;}{\s3 heading 2;}}\s3 a\par\pard b\par\pard\outlinelevel0\b c\par",
        "## a\n\nb\n\n# c",
    ),
    "listed": (
        r"\pard\li360{\listtext\pard 1.\tab}a\par\li720{\listtext\'b7\tab}b\par\li360"
        r"{\pntext 2)\tab}c\par\pard\li9 3.\tab d\par\pard\bullet\tab e\par\pard f",
        "1. a\n   - b\n2) c\n3. d\n- e\n\nf",
    ),
    "table": (
        r"\trowd\intbl\b a\cell\pard\intbl\b0 b\par c\cell\row\intbl d\cell{\b e} f\cell\row\pard g",
        "a\nb\nc\n\nd\t**e** f\ng",
    ),
    "code": (
        r"{\fonttbl{\f0 Times;}{\f1 Courier;}}\f0 a\par\f1 if x:\line   y\par z\par\f0 b",
        "a\n\n```\nif x:\n  y\nz\n```\n\nb",
    ),
    "signs": (r"\{a\~b\_c\-d\}\lquote e\rquote\tab f\line g", "{a\xa0b\u2011cd}‘e’\tf\ng"),
}


@pytest.mark.parametrize(("body", "text"), RTF.values(), ids=RTF)
def test_a_file_in_rich_text_format_is_read_as_its_page_shows_it(body: str, text: str) -> None:
    assert extract_text("a.rtf", (r"{\rtf1\ansi " + body + "}").encode("ascii")).text == text
