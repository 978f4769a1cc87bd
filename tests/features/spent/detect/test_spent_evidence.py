"""Evidence is spent: attacks by trial, and honest callers who repeat themselves."""

import json
import random
from typing import Any

import pytest

from tests.features.spent.detect.oracle import FINEST, KEY, RULE, Oracle, oracle
from tests.features.spent.detect.pieces import LETTERS, dealt, forged, marked_ids, pieces_of, z_of
from tests.unit.detect_service.conftest import HUMAN
from tests.unit.detect_service.test_document_limits import FAR, forbidden, unread  # noqa: F401

pytestmark = pytest.mark.usefixtures("answers_at_once")

WORDS = [
    "".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=4 + number % 7))
    for number in range(9_000)
]


def words(seed: int, count: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=count))


def mails(count: int, length: int) -> list[str]:
    """Different mails of so many words, the last 24 of which are one signature."""
    signature = words(0, 24)
    return [f"{words(1 + number, length - 24)}\n-- \n{signature}" for number in range(count)]


async def verdicts(attacker: Oracle, inputs: list[dict[str, Any]], mode: str = "combined") -> list[str]:
    response = await attacker.post({"inputs": inputs, "keys": [KEY], "fpr": FINEST}, mode)
    assert response.status_code == 200, response.text
    return [result["verdict"] for result in response.json()["results"]]


@pytest.mark.long
async def test_shuffled_pieces_forge_nothing(service: Any) -> None:
    """A marked answer, cut into contexts and blocks that are dealt out anew, weighs what stands beside it."""
    marked = pieces_of(marked_ids(service, 200, 1))
    assert z_of(service, marked) > 6
    async with oracle(service) as attacker:
        chosen, findings = await forged(attacker, marked, 400, seed=1)
        assert findings <= RULE.limit + 2  # after that spent rows are drawn: chance, at 1e-5
        assert z_of(service, chosen) < 2
    async with oracle(service, rule=None) as attacker:  # the attack works where nothing stops it
        chosen, findings = await forged(attacker, marked, 400, seed=1)
        assert findings > 100
        assert z_of(service, chosen) > 2


@pytest.mark.parametrize("length", [50, pytest.param(150, marks=pytest.mark.slow)])
async def test_mails_with_one_signature_are_all_answered(service: Any, length: int) -> None:
    async with oracle(service) as sender:
        found = [await verdicts(sender, [{"text": mail}]) for mail in mails(60, length)]
        assert {one for each in found for one in each} == {"not_detected"}
        together = await verdicts(sender, [{"text": f"{mail} yours"} for mail in mails(60, length)])
        assert "no_verdict" not in together


@pytest.mark.parametrize("names", [30, pytest.param(500, marks=pytest.mark.slow)])
async def test_a_marked_form_letter_stays_found(service: Any, names: int) -> None:
    letter = service.marked(KEY, 400)
    async with oracle(service) as sender:
        for number in range(names):
            name = words(number, 2).title()
            text = f"Dear {name},\n{letter[:200]} {name} {letter[200:]}"
            response = await sender.post({"inputs": [{"text": text}], "keys": [KEY]}, "combined")
            (result,) = response.json()["results"]
            assert result["verdict"] == "watermarked", number
            assert ("asked_before" in result) == (number >= RULE.limit)


@pytest.mark.parametrize(
    "size", [6, 20, 75, *(pytest.param(size, marks=pytest.mark.slow) for size in (8, 10, 40))]
)
async def test_pieces_of_an_article_blind_nobody_to_it(service: Any, size: int) -> None:
    article = marked_ids(service, 150, 3)
    cut = [article[first : first + size + 5] for first in range(0, 150, size)]
    chance = random.Random(size)
    around = [chance.choices(LETTERS, k=225) for _ in range(2)]
    async with oracle(service) as attacker:
        for number in range(RULE.limit):
            hostile = dealt([*cut, *(chance.choices(LETTERS, k=20) for _ in range(20 + number))], chance)
            await verdicts(attacker, [{"token_ids": hostile}])
        for mode in ("combined", "aligned", "localized"):
            honest = [{"token_ids": around[0] + article + around[1]}]
            assert (await verdicts(attacker, honest, mode)) != ["not_detected"]


@pytest.mark.parametrize(("own", "marked"), [(60, 40), (60, 6), (600, 60)])
async def test_a_woven_passage_does_not_make_its_victim_found(service: Any, own: int, marked: int) -> None:
    """So many marked tokens after so many of the victim's own text; the last time one passage at its end."""
    victim, marks = random.Random(5).choices(LETTERS, k=600), marked_ids(service, 700, 7)
    woven: list[int] = []
    for number, first in enumerate(range(0, 600, own)):
        woven += victim[first : first + own] + marks[number * marked : (number + 1) * marked]
    async with oracle(service) as attacker:
        told = [
            await verdicts(attacker, [{"token_ids": random.Random(number).choices(LETTERS, k=20) + woven}])
            for number in range(2 * RULE.limit)
        ]
        assert (told[0] == ["watermarked"]) == (marked != 6)
        assert await verdicts(attacker, [{"token_ids": victim}]) != ["watermarked"]


async def test_ids_that_spell_nothing_get_no_verdict_and_odd_spellings_are_flagged(service: Any) -> None:
    bytes_of_no_character = [service.tokenizer.encode("é")[0]] * 2
    carrier = [*marked_ids(service, 40, 1), *bytes_of_no_character * 40]
    separators = [*marked_ids(service, 40, 1), *LETTERS[:1] * 60]
    in_pairs = [*marked_ids(service, 40, 1), *service.tokenizer.encode("€")[:2] * 40]
    inputs = [{"token_ids": one} for one in (carrier, in_pairs, separators, marked_ids(service, 100, 1))]
    async with oracle(service) as attacker:
        response = await attacker.post({"inputs": inputs, "keys": [KEY]}, "combined")
        *carriers, marked = response.json()["results"]
        assert [one.get("error", {}).get("code") for one in carriers] == ["ids_spell_nothing"] * 3
        assert marked["verdict"] == "watermarked"
        assert "reads_back" not in marked
        odd = [*marked_ids(service, 100, 1), bytes_of_no_character[0]]
        (flagged,) = (await attacker.post({"inputs": [{"token_ids": odd}]}, "combined")).json()["results"]
        assert flagged["reads_back"] is False


async def test_a_case_names_the_spent_rows_and_the_seed(service: Any) -> None:
    text = service.marked(KEY)
    async with oracle(service, case_key=service.case_key) as sender:
        cases = []
        for number in range(RULE.limit + 1):
            body = {"inputs": [{"text": f"{text} {number}"}], "keys": [KEY], "case": True}
            (result,) = (await sender.post(body, "combined")).json()["results"]
            cases.append(json.loads(result["case"])["case"])
    assert "spent" not in cases[0]
    spent = cases[-1]["spent"]
    assert len(bytes.fromhex(spent["seed"])) == 16
    (reading, *_) = spent["spent"]
    assert (reading["key_id"], reading["row_tokens"], reading["reading"]) == (KEY, 6, "as_sent")
    assert sum(end - start for start, end in reading["rows"]) > 150


@pytest.mark.usefixtures("unread")
async def test_a_text_of_more_bytes_than_its_tokens_can_have_has_no_rows_counted(
    service, monkeypatch
) -> None:
    monkeypatch.setattr("ttmark.detect_service.features.spent.spending.DocumentRows", forbidden)
    async with oracle(service) as sender:
        assert (await sender.post({"inputs": [{"text": FAR}]}, "combined")).status_code == 413


async def test_files_whose_evidence_is_spent_are_refused_in_the_words_of_the_route(service: Any) -> None:
    path, of_files = "/v1/content_provenance_checks", json.dumps({"mode": "direct", "fpr": 1e-2})
    async with oracle(service) as sender:
        for number in range(12):  # ten documents may be asked about at this rate
            text = f"Letter {number}. {HUMAN * 6}"
            form = {"file": text.encode(), "question": (None, of_files)}
            answer = await sender.client.post(path, files=form, headers=sender.headers)
            if answer.status_code != 200:
                break
            assert answer.json()["results"][1]["outcome"] == "not_detected"
        asked = await sender.post({"inputs": [{"text": text}], "fpr": 1e-2})
    assert (answer.status_code, answer.json()["param"]) == (422, "file")
    assert answer.json()["detail"] == asked.json()["results"][0]["error"]["message"]
