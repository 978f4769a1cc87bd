"""The readings of a text, rule by rule and character by character."""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

import regex  # type: ignore[import-untyped]

BELOW = 220
JOINERS = {"\u200c", "\u200d", *map(chr, range(0xFE00, 0xFE10))}
KEYCAP = "\u20e3"


def unwrapped(text: str, look_alikes: Mapping[str, str]) -> str:
    """The text after the nine rules of the specification."""
    text = _invisible(_white_space(text).replace("\r", ""))
    if not text.isascii():
        text = _plain_letters(_stray_marks(text), look_alikes)
    lines = _unindented(text).split("\n")
    text = _joined(_unindented("\n".join(re.sub("^(?:> ?)*", "", line) for line in lines)))
    text = re.sub(r"(?<=[^ \t\n])([ \t])[ \t]+(?![ \t\n])", r"\1", text)
    return re.sub(r"([^ \t\n]  |)[ \t]*(?=\n)", _before_line_end, text)


def _before_line_end(match: re.Match[str]) -> str:
    return match[0] if match[0] == match[1] else match[1].rstrip(" \t")


def without_typography(text: str) -> str:
    """An `unwrapped` text after the last rule."""
    plain = {**dict.fromkeys("‘’‚‛", "'"), **dict.fromkeys("“”„‟", '"'), "…": "..."}
    plain |= dict.fromkeys("\u2010\u2011\u2012\u2013", "-")
    plain |= {chr(code): unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
    return "".join(plain.get(c, c) for c in text)


def _unindented(text: str) -> str:
    lines = text.split("\n")
    words = [line for line in lines if line.strip()]
    width = 0
    while len(words) > 1 and all(line[: width + 1] == words[0][: width + 1] for line in words):
        if words[0][width] not in " \t":
            break
        width += 1
    return "\n".join(line[width:] if line.strip() else line for line in lines)


def _goes_on(line: str, after: str) -> bool:
    item, deeper = r"[-*+•>#|]|[0-9]+[.)]", _indented(after) - _indented(line)
    return not re.match(item, after.lstrip()) and (
        deeper == 0 or (deeper > 0 and bool(re.match(item, line.lstrip())))
    )


def _indented(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(text: str) -> str:
    lines = text.split("\n")
    if len(lines) < 4 or len(text) < 20 * (len(lines) - 1):
        return text
    broken, others = set(), 0
    for i in range(len(lines) - 1):
        line, after = lines[i], lines[i + 1]
        if not line.strip() or not after.strip() or not _goes_on(line, after):
            continue
        first = last = i
        while first > 0 and lines[first - 1].strip():
            first -= 1
        while last + 1 < len(lines) and lines[last + 1].strip():
            last += 1
        longest = max(len(each.rstrip()) for each in lines[first : last + 1])
        if len(f"{line.rstrip()} {after.split()[0]}") > longest:
            broken.add(i)
        else:
            others += 1
    if len(broken) < max(3, others):
        return text
    out = lines[0]
    for i, line in enumerate(lines[1:]):
        out = f"{out.rstrip()} {line.lstrip()}" if i in broken else f"{out}\n{line}"
    return out


@lru_cache(2**16)
def _is(character: str, name: str) -> bool:
    return bool(regex.fullmatch(rf"\p{{{name}}}", character))


@lru_cache(2**16)
def _within(character: str, *ranges: tuple[int, int]) -> bool:
    return character != "" and any(first <= ord(character) <= last for first, last in ranges)


def _white_space(text: str) -> str:
    out = ""
    for i, c in enumerate(text):
        before, after = text[i - 1 : i] if i else "", text[i + 1 : i + 2]
        braille = any(_within(neighbour, (0x2801, 0x28FF)) for neighbour in (before, after))
        if c in "\x0b\x0c\x85\u2028\u2029" or (c == "\r" and after != "\n"):
            out += "\n"
        elif unicodedata.category(c) == "Zs" or c in "\u3164\uffa0" or (c == "\u2800" and not braille):
            out += " "
        else:
            out += c
    return out


def _invisible(text: str) -> str:
    out, i = "", 0
    while i < len(text):
        c, before, after = text[i], text[i - 1 : i] if i else "", text[i + 1 : i + 2]
        flag = re.match("\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f", text[i:])
        if flag:
            out, i = out + flag[0], i + len(flag[0])
        elif (_is(c, "Han") and _within(after, (0xE0100, 0xE01EF))) or (
            _is(c, "Mongolian") and _within(after, (0x180B, 0x180F))
        ):
            out, i = out + c + after, i + 2
        elif c in "\u115f\u1160" and any(one and _is(one, "Hangul") for one in (before, after)):
            out, i = out + c, i + 1
        elif c in JOINERS:
            end = i
            while end < len(text) and text[end] in JOINERS:
                end += 1
            latin = _within(before, (0, 0x7F), (0x300, 0x36F), (0x2010, 0x2027)) or (
                before != "" and _is(before, "Latin")
            )
            kept = text[i:end]
            if latin:
                kept = text[end - 1] if text[end : end + 1] == KEYCAP else ""
            out, i = out + kept, end
        elif _ignorable(c):
            while i < len(text) and _ignorable(text[i]):
                i += 1
        else:
            control = _within(c, (0, 8), (0xE, 0x1F), (0x7F, 0x84), (0x86, 0x9F), (0xFFF9, 0xFFFB))
            out, i = out + ("" if control else c), i + 1
    return out


def _ignorable(c: str) -> bool:
    return _is(c, "Default_Ignorable_Code_Point") and c not in JOINERS and c not in "\u3164\uffa0"


def _stray_marks(text: str) -> str:
    ranges = (0x300, 0x36F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF)
    parts = [m for c in text if not c.isascii() for m in unicodedata.normalize("NFD", c)]
    classes = [unicodedata.combining(mark) == BELOW for mark in parts if _within(mark, *ranges)]
    mostly_below = 2 * sum(classes) > len(classes)
    out, i = "", 0
    while i < len(text):
        c, end = text[i], i + 1
        while end < len(text) and unicodedata.category(text[end])[0] == "M":
            end += 1
        run = text[i + 1 : end]
        if not (c.isascii() or _is(c, "Latin")) or KEYCAP in run:
            out, i = out + c, i + 1
            if KEYCAP in run:
                out, i = out + run, end
            continue
        letter, out = c, out + c
        for mark in run:
            together = unicodedata.normalize("NFC", letter + mark)
            if mostly_below and unicodedata.combining(mark) == BELOW:
                continue
            if len(together) == 1:
                letter = together
            elif letter.isascii():
                continue
            out += mark
        i = end
    return "".join(map(_without_below, out)) if mostly_below else out


def _without_below(letter: str) -> str:
    base, *marks = list(unicodedata.normalize("NFD", letter))
    kept = [mark for mark in marks if unicodedata.combining(mark) != BELOW]
    if not (_within(letter, (0x80, 0x2C7F)) and base.isascii() and len(kept) < len(marks)):
        return letter
    return unicodedata.normalize("NFC", base + "".join(kept))


def _plain_letters(text: str, look_alikes: Mapping[str, str]) -> str:
    dotless = {"\u0237": "j"}
    if 2 * sum(c in "çğöüşəÇĞÖÜŞƏİ" for c in text) < text.count("\u0131"):
        dotless["\u0131"] = "i"
    text = "".join(dotless.get(c, c) for c in map(_unstyled, text))

    def word(match: re.Match[str]) -> str:
        if not re.search("[A-Za-z]", match[0]):
            return match[0]
        return "".join(look_alikes.get(c, c) for c in match[0])

    return re.sub(r"\w+", word, text)


def _unstyled(c: str) -> str:
    form, plain = unicodedata.decomposition(c), unicodedata.normalize("NFKC", c)
    plain = {"\u0131": "i", "\u0237": "j"}.get(plain, plain)
    styled = form and (form[0] != "<" or form.startswith(("<font>", "<wide>", "<narrow>", "<compat>")))
    of_kind = _within(c, (0x80, 0xFAFF), (0xFB07, 0x1FFFF)) and unicodedata.category(c)[0] in "LN"
    return plain if styled and of_kind and plain.isascii() and plain.isalnum() else c
