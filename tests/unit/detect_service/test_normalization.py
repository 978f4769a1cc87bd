"""Tricks with characters are counted, undone on request, and positions stay those of the original."""

import textwrap
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.spec_detector.normalisation import unwrapped as specified
from ttmark.detect_service.normalization.normalizer import NormalizedText, TextNormalizer

NORMALIZER = TextNormalizer()


def unwrapped(text: str) -> NormalizedText:
    return NORMALIZER.readings(text)["unwrapped"]


@pytest.mark.parametrize(
    ("text", "plain", "counts"),
    [
        ("plain text\n", "plain text\n", (0, 0, 0, 0)),
        ("h\u0435llo w\u043erld", "hello world", (0, 2, 0, 0)),
        ("zero\u200bwidth \u2060joined\ufeff", "zerowidth joined", (3, 0, 0, 0)),
        ("one\u00a0two\u2009three", "one two three", (0, 0, 2, 0)),
        ("one two three four,\u00a0five", "one two three four, five", (0, 0, 0, 0)),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd", (0, 0, 0, 0)),
        ("> a  \r\n> b.  c\r\n> 1.  d\t\r\n", "a  \nb. c\n1. d\n", (0, 0, 0, 0)),
        ("\U0001d5f5\U0001d5f2\U0001d5f9\U0001d5f9\U0001d5fc", "hello", (0, 5, 0, 0)),
        ("I\u0399\u0406", "III", (0, 2, 0, 0)),
        ("\u2170\u217d\u217e\u217f \u2171 \ufb01ne", "icdm ii \ufb01ne", (0, 5, 0, 0)),
        ("th\u0131s \u0131s \u0237ust \U0001d6a4t", "this is just it", (0, 4, 0, 0)),
        ("\u0261ood \u0251nd", "good and", (0, 2, 0, 0)),
        ("one  two   three", "one two three", (0, 0, 3, 0)),
        ("one\u2800two\u3164three \uffa0four", "one two three four", (0, 0, 4, 0)),
        ("ends  \nor  ends   \n  \n", "ends  \nor ends\n\n", (0, 0, 1, 0)),
        ("a\u0323n e\u0323gg, \u1ecdn\u1eb9", "an egg, one", (0, 0, 0, 4)),
        ("x\u0353 .\u0301 \u0301", "x . ", (0, 0, 0, 3)),
        ("a\x01b\x7fc\u0085", "abc\n", (2, 0, 0, 0)),
        ("so\u00adft \U000e0061\u202dtag\u202c", "soft tag", (4, 0, 0, 0)),
        ("caf\u00e9\u200d\ufe0e", "caf\u00e9", (2, 0, 0, 0)),
    ],
)
def test_tricks_are_undone_and_counted(text: str, plain: str, counts: tuple[int, int, int, int]) -> None:
    normalized = unwrapped(text)
    assert normalized.text == plain
    assert tuple(normalized.counts) == counts


PARAGRAPHS = "\n".join(
    [
        "The keeper climbed the stairs each night and lit the lamp before the first ships came by. "
        "Then he wrote down their names.",
        "",
        "What he kept in the house was little:",
        "- a table and a bed, and a shelf of books for the long evenings that his father had left to him",
        "- a clock",
        "1. It struck the hours.",
        "2. Nobody else was there to hear it, and so he let it run down in the winter.",
        "",
        "Later the lamp was made to light itself. He went on climbing the stairs, since somebody had to see "
        "that it did, he said.",
    ]
)


@pytest.mark.parametrize("width", [30, 40, 72, 90])
@pytest.mark.parametrize("sign", ["", "> ", "> > "])
@pytest.mark.parametrize(
    "own", ["", "\n\n".join(f"I read your page {page} twice, and then again." for page in range(40))]
)
def test_lines_that_a_page_or_a_mail_broke_are_joined(width: int, sign: str, own: str) -> None:
    wrapped = [line for part in PARAGRAPHS.split("\n") for line in textwrap.wrap(part, width) or [""]]
    broken, plain = (
        f"{own}\n\n{text}\n\n{own}".strip()
        for text in ("\n".join(sign + line for line in wrapped), PARAGRAPHS)
    )
    assert unwrapped(textwrap.indent(broken, "   ")).text == plain
    normalized = unwrapped(broken)
    assert normalized.text == plain
    start = normalized.text.index("somebody")
    assert broken[slice(*normalized.original_span(start, start + 8))] == "somebody"
    assert unwrapped(plain).text == plain


def test_lines_of_items_hang_over_and_are_joined_where_code_is_not() -> None:
    items = [f"{number}.  {PARAGRAPHS.split(chr(10))[0]}" for number in (9, 10)]
    hanging = "\n\n".join(textwrap.fill(one, 50, subsequent_indent="    ") for one in items)
    assert unwrapped(hanging).text == "\n\n".join(items).replace(".  T", ". T")
    code = "def f(names):\n    for name in names:\n        print(name)\n        yield 1\n    return\n" * 3
    assert unwrapped(code).text == code


def test_typography_is_put_back_as_models_write_it() -> None:
    text = "\u201cSo\u201d, \u2018he\u2019 said\u2026 an \ufb03x \u2013 non\u2011stop \u2014 \u201athat\u201b"
    readings = NORMALIZER.readings(text)
    assert readings["unwrapped"].text == text
    assert readings["typography"].text == "\"So\", 'he' said... an ffix - non-stop \u2014 'that'"


WORDS = ["a", "lamp", "lighthouse", "-", "1.", ">", " ", "*", "   "]
LINE = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)


@given(st.lists(LINE, max_size=12).map("\n".join))
def test_lines_are_joined_as_the_specification_says(text: str) -> None:
    assert unwrapped(text).text == specified(text, {})


@pytest.mark.parametrize(
    "text",
    [
        "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440",
        "\u03b1-helix, 5 \u00b5m, na\u00efve, stra\u00dfe, \u0131\u015f\u0131k",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f 1\ufe0f\u20e3",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "e\u0301",
        "def f(x):\n    if x:\n\t\treturn 1",
        "Ti\u1ebfng Vi\u1ec7t r\u1ea5t \u0111\u1eb9p v\u00e0 m\u1ed9t ng\u01b0\u1eddi \u0111\u1ecdc",
        "Tie\u0302\u0301ng Vie\u0323\u0302t ra\u0302\u0301t \u0111e\u0323p, ngu\u031bo\u031b\u0300i",
        "\u0928\u092e\u0938\u094d\u0924\u0947 \u0915\u094d\u200d\u0937",
        "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",
        "\u0627\u0644\u0633\u0651\u064e\u0644\u064e\u0627\u0645\u064f",
        "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22\u0e17\u0e35\u0e48\u0e2a\u0e38\u0e14",
        "\u2260 =\u0338 x\u00b2 H\u2082O \u00bd \u2460 \u2026 \u201cso\u201d \u2014",
        "G\u00fcne\u015f \u0131\u015f\u0131\u011f\u0131 alt\u0131nda k\u0131rm\u0131z\u0131 \u00e7i\u00e7ek",
        "\u8fbb\U000e0100",
        "\u1820\u180b \U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "\u1112\u1160 \u2801\u2800\u2803",
        "1) one\n   - two\n\n\tthree",
    ],
)
def test_other_scripts_and_emoji_stay_as_they_are(text: str) -> None:
    assert unwrapped(text).text == text


NASTY = (
    "ab 1.,;> \t\r\n\u200b\u0323\u1eb9\u3164\u2800\u0131\u2170\x01\u00a0\u0435\u2028"
    "\u2026\u201c\ufb03\U0001f600\U0001d5f5"
)


@given(st.text(alphabet=NASTY), st.lists(st.integers(0, 60), max_size=8))
def test_passages_of_each_reading_lie_in_the_text_as_sent_in_their_order(text: str, ends: list[int]) -> None:
    for reading in NORMALIZER.readings(text).values():
        places = sorted(min(end, len(reading.text)) for end in ends)
        spans = [reading.original_span(*each) for each in pairwise(places) if each[0] < each[1]]
        assert all(0 <= start <= end <= len(text) for start, end in spans)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
        # Nothing that is plain is taken for something else.
        for at, kept in enumerate(reading.text):
            start, end = reading.original_span(at, at + 1)
            read = text[start:end] or text[start - 1]
            assert kept in read or not read.isascii() or read[0] in "\r\n\t"
    assert NORMALIZER.readings(text)["as_sent"].text == text


@given(st.text(alphabet="ab \t\r\n\u200b\u00a0\u0435\u2028\u3164\u2800\u0131\u2170\x01\u2026\u201c"))
def test_a_text_that_is_read_holds_no_tricks(text: str) -> None:
    for name in ("unwrapped", "typography"):
        once = NORMALIZER.readings(text)[name].text
        assert NORMALIZER.readings(once)[name].text == once


LONG = "\U000e0061", "\U0001f3f4\U000e0061", "\r\n", "\ufb01"


@pytest.mark.long
@pytest.mark.parametrize("pattern", [" ", "\t ", "a ", "\u0323", "a\u0323\u0301", "\u200d", *LONG])
def test_the_time_grows_with_the_length_alone(pattern: str) -> None:
    def seconds(characters: int) -> float:
        many = pattern * (characters // len(pattern))
        began = time.process_time()
        NORMALIZER.readings(f"x{many}x")
        NORMALIZER.readings(f"{many}x\nx")
        return time.process_time() - began

    # Ten times the text: a quadratic rule would take a hundred times as long.
    assert min(seconds(200_000) for _ in range(2)) < 40 * max(seconds(20_000) for _ in range(3)) + 0.1
