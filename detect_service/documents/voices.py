"""Who says what in a text: its sender, and others whose lines are quoted, as mail programs write them."""

import re
from collections.abc import Callable, Sequence
from itertools import compress

from ttmark.shared.schemas.detection.detect import Document, Voice

_SIGN, _WORD = re.compile(r"[ \t]{0,3}>"), re.compile(r"[^\W_]")
# "On Tue, 3 Nov 2026 at 09:12, Ann wrote:", in the languages of many mails.
_WROTE = re.compile(
    r"\b(?:wrote|sent|schrieb|geschrieben|a écrit|escribió|escreveu|ha scritto|schreef|geschreven|skrev"
    r"|napisał|napsal|kirjoitti|írta|написал|viết)\b|写道|[>)\]]\s?[:：]\Z",
    re.I,
)
_WHEN_OR_WHO = re.compile(r"\b[0-9]{1,2}[:h][0-9]{2}\b|\S@\S")
_BETWEEN = re.compile(
    r"\W{0,3}-{2,}\s?(?=.{0,40}(?:message|nachricht|mensaje|mensagem|messaggio|bericht|meddela|meddelelse"
    r"|wiadomość|сообщение))[^\W\d_][\w' ]{3,40}\s?-{2,}\s*\Z"
    r"|\W{0,3}(?:(?:begin )?forwarded message|anfang der weitergeleiteten (?:e-mail|nachricht)"
    r"|(?:début du message|inicio del mensaje|início da mensagem|inizio messaggio) \w+)\s?:\s*\Z",
    re.I,
)
# Of the head of a mail: who, when, to whom, about what.
_LABEL = re.compile(
    r"[\s*]{0,9}(?:(from|von|de|da|van|fra|från|od|от|от кого|发件人|差出人)"
    r"|(sent|date|gesendet|datum|dato|data|envoyé|enviado(?: el| em)?|fecha|inviato|verzonden|sendt|skickat"
    r"|дата|отправлено|wysłano|日期|发送时间)|(to|an|à|a|para|aan|til|till|do|кому|收件人)"
    r"|(subject|betreff|objet|asunto|assunto|oggetto|onderwerp|emne|ämne|temat|тема|主题))\s?[:：]",
    re.I,
)
_WROTE_LINES, _HEAD_LINES, _HEAD_LABELS = 3, 7, 3
_LONGEST = 300


def voice_of(document: Document, are_marked: Callable[[list[str]], list[bool] | None]) -> Voice | None:
    """Whose words in a document carry the mark that was found in it; None: it quotes nothing.

    Args:
        are_marked: whether each of the texts, the own words and what is quoted, carries it by itself; None:
            that is not looked at.
    """
    if document.attachment:
        return "attachment"
    own, quoted = voices(document.text or "")
    if not _WORD.search(quoted):
        return None
    if not _WORD.search(own):
        return "quoted"
    in_own, in_quoted = are_marked([own, quoted]) or (False, False)
    if in_own and in_quoted:
        return "both"
    return "own" if in_own else "quoted" if in_quoted else "whole"


def voices(text: str) -> tuple[str, str]:
    """The sender's own lines and those that are quoted, each together; either may be without words.

    Quoted are lines with `>` before them, and all that follows a line between messages, the head of another
    message, or a line that says who wrote, if no lines with `>` follow it; and such a line itself.
    """
    lines = text.splitlines(keepends=True)
    quoted = [_SIGN.match(line) is not None for line in lines]
    at, said = 0, False
    while at < len(lines):
        end = at if quoted[at] else _introduction(lines, quoted, at, said=said)
        if end > at:
            end = end if _sign_follows(lines, quoted, end) else len(lines)
            quoted[at:end] = [True] * (end - at)
        said = said or not (quoted[at] or _LABEL.match(lines[at]) or not _WORD.search(lines[at]))
        at = max(end, at + 1)
    return "".join(compress(lines, (not one for one in quoted))), "".join(compress(lines, quoted))


def _introduction(lines: Sequence[str], quoted: Sequence[bool], at: int, *, said: bool) -> int:
    """Behind the lines from `at` on that introduce what somebody else wrote; `at`: they do not."""
    first = lines[at][:_LONGEST]
    if _BETWEEN.match(first):
        return at + 1
    label = _LABEL.match(first)
    if said and label and (label[1] or label[2]):
        further = [_LABEL.match(line[:_LONGEST]) for line in lines[at : at + _HEAD_LINES]]
        places = {one.lastindex: place for place, one in enumerate(further, at + 1) if one}
        if len(places) >= _HEAD_LABELS:
            return max(places.values())
    dated = any(character.isdigit() for character in first)
    for end in range(at + 1, at + 1 + (_WROTE_LINES if dated else 1)):
        joined = " ".join(line.strip() for line in lines[at:end])
        if end > len(lines) or quoted[end - 1] or not lines[end - 1].strip() or len(joined) > _LONGEST:
            break
        wrote = joined.endswith((":", "：", "-", "*")) and _WROTE.search(joined)
        if wrote and (_WHEN_OR_WHO.search(joined) or _sign_follows(lines, quoted, end)):
            return end
    return at


def _sign_follows(lines: Sequence[str], quoted: Sequence[bool], at: int) -> bool:
    return next((quoted[place] for place in range(at, len(lines)) if lines[place].strip()), False)
