"""A finding says whose words carry the mark: the sender's own, or lines that the text quotes."""

import pytest

from tests.unit.detect_service.conftest import HUMAN
from ttmark.detect_service.documents.voices import voices

OWN, OTHER = "I looked at it again.\n", "The lamp was lit.\nNobody came.\n"
SIGNED = "> The lamp was lit.\n> Nobody came.\n"
HEAD = "{}: Ann Smith <ann@school.example>\n{}: 3.11.2026 09:12\n{}: Tom\n{}: Essay\n\n"
BETWEEN = {
    "Gmail": ("On Tue, Nov 3, 2026 at 9:12 AM Ann Smith <\nann@school.example> wrote:\n\n", SIGNED),
    "Apple": ("On 3 Nov 2026, at 09:12, Ann wrote:\n\n", OTHER),
    "no date": ("Ann wrote:\n", SIGNED),
    "Thunderbird, German": ("Am 03.11.2026 um 09:12 schrieb Ann Smith:\n", SIGNED),
    "French": ("Le 3 nov. 2026 à 09:12, Ann Smith <ann@school.example> a écrit :\n\n", OTHER),
    "old Outlook": ("-----Original Message-----\n", OTHER),
    "Outlook": (HEAD.format("From", "Sent", "To", "Subject"), OTHER),
    "Outlook, Chinese": (HEAD.format("发件人", "发送时间", "收件人", "主题"), OTHER),
    "forwarded": ("---------- Forwarded message ---------\n", OTHER),
    "Apple, forwarded": ("Anfang der weitergeleiteten E-Mail:\n\n", SIGNED),
    "twice": ("> On 2 Nov 2026, at 08:00, Tom wrote:\n>\n>> Well?\n>\n", SIGNED),
}


@pytest.mark.parametrize("form", BETWEEN)
def test_own_words_are_told_from_what_mail_programs_quote(form: str) -> None:
    between, quoted = BETWEEN[form]
    own, others = voices(f"{OWN}\n{between}{quoted}")
    assert (own.split(), others.split()) == (OWN.split(), f"{between}{quoted}".split())
    if quoted == SIGNED:
        assert voices(f"{between}{quoted}\n{OWN}")[0].strip() == OWN.strip()


def test_what_introduces_no_other_text_quotes_none() -> None:
    for text in (
        "In 1859 Darwin wrote:\n\nThere is grandeur in this view of life.\n",
        "They met at 10:15:\n- Ann\nFrom: here\nto the sea it is a mile.\n",
        HEAD.format("From", "Sent", "To", "Subject") + OWN,
        "--- The message of the book ---- is plain\n" + OWN,
    ):
        assert voices(text) == (text, "")


def mail(service, own: bool, quoted: bool) -> str:
    """A reply of four parts own and quoted words, with the mark in either."""
    mine = service.marked("a-one", tokens=400, spaces="single") if own else 4 * HUMAN
    theirs = service.marked("a-one", tokens=400, spaces="single", seed=8) if quoted else 4 * HUMAN
    return f"{mine}\n\nOn 3 Nov 2026, at 09:12, Ann wrote:\n\n> {theirs}\n"


FOUND = {(True, False): "own", (False, True): "quoted", (True, True): "both"}


@pytest.mark.parametrize("marked", FOUND)
async def test_a_finding_says_whose_words_carry_it(service, mode: str, marked: tuple[bool, bool]) -> None:
    text, rate = mail(service, *marked), {"fpr": 1e-5, "keys": ["a-one"]}
    result = await service.one(mode, text, **rate)
    assert (result.verdict, result.voice) == ("watermarked", FOUND[marked])
    told = await service.one(mode, text, "verdict", **rate)
    assert (told.verdict, told.voice) == ("watermarked", "whole")
    assert told.message.headline == "Watermark found in a text that quotes another"
    assert told.message == (await service.one(mode, mail(service, True, True), "verdict", **rate)).message


async def test_a_text_that_only_quotes_accuses_nobody_and_one_that_quotes_nothing_is_as_before(
    service,
) -> None:
    text = service.marked("a-one", tokens=400, spaces="single")
    quoting = await service.one("combined", f"On 3 Nov 2026, at 09:12, Ann wrote:\n\n{text}", "verdict")
    assert (quoting.voice, quoting.message.headline) == ("quoted", "Watermark found in quoted lines")
    inputs = [{"text": text, "attachment": True}]
    (attached,) = await service.results("combined", {"inputs": inputs}, "verdict")
    assert (attached.voice, attached.message.headline) == ("attachment", "Watermark found in an attachment")
    assert "voice" not in (await service.one("combined", text)).model_dump()
    assert (await service.one("combined", 4 * HUMAN + "\n> " + HUMAN)).voice is None
