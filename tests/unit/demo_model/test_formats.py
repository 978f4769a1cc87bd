"""Conversion of documentation formats to English paragraphs."""

import pytest

from gen_service.demo_model.training.formats.man import from_man
from gen_service.demo_model.training.formats.page import from_html
from gen_service.demo_model.training.formats.plain import from_python, from_text
from gen_service.demo_model.training.formats.pod import from_pod
from gen_service.demo_model.training.prose import converter, is_english_prose, prose, tidy

SENTENCE = (
    "The server reads its configuration from a file when it starts, and it writes its log to the console."
)


def test_html_keeps_running_text_and_drops_listings_headings_and_navigation() -> None:
    page = """
    <head><title>Title</title></head><nav><p>Home</p></nav><h1>Heading</h1>
    <p>First <em>para</em>graph &amp; more.</p><pre>listing()</pre><ul><li>An item.</li></ul><p>Last.
    """
    assert [tidy(text) for text in from_html(page) if tidy(text)] == [
        "First paragraph & more.",
        "An item.",
        "Last.",
    ]


def test_html_with_a_missing_end_tag_loses_no_more_than_its_parent() -> None:
    assert tidy(" ".join(from_html("<table><tr><td><pre>x</table><p>Still here.</p>"))) == "Still here."


def test_man_pages_lose_macros_fonts_and_examples() -> None:
    page = "\n".join(
        [
            '.\\" comment',
            ".TH NAME 1",
            ".SH DESCRIPTION",
            "The \\fBname\\fP program, see",
            ".BR other (1),",
            "reads well\\-known files.",
            ".TP",
            ".B \\-v",
            "Print more.",
            ".nf",
            "example",
            ".fi",
            "It\\(aqs done.",
        ]
    )
    assert [tidy(text) for text in from_man(page) if tidy(text)] == [
        "The name program, see other(1), reads well-known files.",
        "Print more.",
        "It's done.",
    ]


def test_pod_keeps_ordinary_paragraphs_without_formatting_codes() -> None:
    text = "See L<the manual|perlop> and C<< a E<lt> B<b> >> here."
    page = f"code();\n\n=head1 NAME\n\n{text}\n\n  verbatim\n\n=cut\n\nmore();"
    assert [tidy(text) for text in from_pod(page)] == ["See the manual and a < b here."]


def test_plain_text_loses_markup_and_blocks_of_uneven_indentation() -> None:
    markup = "Call :func:`~os.path.join` or ``open`` with **care**,\nthen [read](http://x.org) it."
    assert from_text(f"{markup}\n\ntable\n   of   things") == [
        "Call os.path.join or open with care, then read it."
    ]


def test_docstrings_are_taken_from_modules_classes_and_functions() -> None:
    source = '"""One."""\nclass A:\n    """Two."""\n    def f(self):\n        """Three\n        lines."""\n'
    assert from_python(source) == ["One.", "Two.", "Three lines."]


def test_a_python_file_that_does_not_parse_gives_nothing() -> None:
    assert from_python("def broken(:") == []


def test_tidying_leaves_one_line_with_typewriter_signs() -> None:
    assert tidy("  “Don’t\n wait”\u00a0– go… ") == '"Don\'t wait" - go...'


def test_full_english_sentences_are_prose() -> None:
    assert is_english_prose(SENTENCE)


@pytest.mark.parametrize(
    "paragraph",
    [
        "Short one.",
        SENTENCE.removesuffix("."),
        SENTENCE.lower(),
        SENTENCE.upper(),
        "Der Server liest seine Konfiguration aus einer Datei, und schreibt dann ein Protokoll.",
        "X = foo(a, b) + bar[1:2] * 3 - {c: d} / e ** 2; y = 1, 2, 3, 4; z = f(g(h(i(j(k(l(m))))))).",
        "Name, type, default, minimum, maximum, description, unit, group, owner, version, comment, status.",
    ],
)
def test_fragments_code_capitals_lists_and_other_languages_are_not_prose(paragraph: str) -> None:
    assert not is_english_prose(paragraph)


@pytest.mark.parametrize("name", ["a/b.html", "x.1.gz", "y.3ssl.gz", "perlop.pod", "NEWS.txt.gz", "m.py"])
def test_documentation_files_have_a_converter(name: str) -> None:
    assert converter(name) is not None


@pytest.mark.parametrize("name", ["a.png", "data.json", "README", "archive.tar.gz"])
def test_other_files_have_none(name: str) -> None:
    assert converter(name) is None
    assert prose(name, SENTENCE) == []


def test_prose_of_a_file_is_its_tidied_english_paragraphs() -> None:
    assert prose("a.txt", f"{SENTENCE}\n\nShort title\n\n{SENTENCE}") == [SENTENCE, SENTENCE]
