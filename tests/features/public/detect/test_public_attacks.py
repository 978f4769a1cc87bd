"""Attacks on the public tier: by many questions, by many people, by headers."""

import random
from dataclasses import replace
from typing import Any

import pytest
from starlette.datastructures import Headers

from tests.features.public.detect.public_asker import BUDGET, UNCOUNTED, PublicService, public_service
from tests.features.spent.detect.oracle import forge, log10_p, marked, scrub
from tests.features.spent.detect.test_spent_evidence import mails
from ttmark.detect_service.features.public.public_allowance import words_of
from ttmark.detect_service.features.public.tier import PUBLIC_PATH
from ttmark.shared.http.auth import Guests, subscriber
from ttmark.shared.limits.counters import LocalCounters

pytestmark = pytest.mark.usefixtures("answers_at_once")


class Crowd:
    """Somebody who asks from a new address each time, or under the next of several tokens."""

    def __init__(self, public: PublicService, tokens: list[str] | None = None) -> None:
        self.public = public
        self.tokens = tokens
        self.asked = 0
        self.verdicts: list[str | None] = []

    async def verdict(self, words: list[str]) -> str | None:
        self.asked += 1
        if self.tokens:
            response = await self.public.ask(
                " ".join(words), token=self.tokens[self.asked % len(self.tokens)]
            )
        else:
            address = f"2001:db8:{self.asked:x}::1"
            response = await self.public.ask(" ".join(words), token=None, address=address)
        verdict = response.json()["verdict"] if response.status_code == 200 else None
        self.verdicts.append(verdict)
        return verdict

    async def found(self, words: list[str], rate: float) -> bool | None:
        """The attacker's questions of `oracle`, at the one rate that there is."""
        verdict = await self.verdict(words)
        return None if verdict is None else verdict == "found"


@pytest.mark.long
async def test_a_crowd_learns_about_a_text_what_one_token_with_detect_may(service: Any) -> None:
    """Which words carry the mark: each answer is to the text without one word."""
    text = await marked(service, 1, words=160)
    changed = [text[:place] + text[place + 1 :] for place in range(0, 160, 8)]
    async with public_service(service, UNCOUNTED, guests=True) as public:
        crowd = Crowd(public)
        for words in changed:
            await crowd.verdict(words)
        # Beyond them the text is found again where it holds what was found, whatever the words are.
        assert set(crowd.verdicts[BUDGET.everybody.limit + 2 :]) <= {"found", None}
        tokens = [await public.new_token() for _ in range(3)]
        for words in changed[:8]:
            answer = await public.ask(" ".join(words[1:]), token=tokens[0])
            assert answer.status_code == 429 or answer.json()["verdict"] == "found"


async def test_one_asker_learns_less(service: Any) -> None:
    text = await marked(service, 1, words=160)
    changed = [" ".join(text[:place] + text[place + 1 :]) for place in range(0, 40, 4)]
    async with public_service(service, UNCOUNTED, guests=True) as public:
        mine = [(await public.ask(one)).json().get("verdict") for one in changed]
        assert set(mine[BUDGET.asker :]) <= {"found", None}
        # Its further questions take nothing from the others.
        theirs = [(await public.ask(one, token=None)).json().get("verdict") for one in reversed(changed)]
        assert None not in theirs[: BUDGET.asker]


async def test_prefixes_spaces_and_odd_letters_make_no_new_text(service: Any) -> None:
    text = " ".join(await marked(service, 1, words=160))
    chance = random.Random(1)
    tricks = [
        lambda: "".join(chance.choices("abcdefgh ", k=200)) + text,
        lambda: text.replace(" ", "  \u200b"),
        lambda: text.upper(),
        lambda: text.replace("a", "\u0430"),
        lambda: text + "".join(chance.choices("xyz ", k=3000)),
        lambda: text.replace("o", "o\u0323"),
    ]
    async with public_service(service, UNCOUNTED) as public:
        said = [(await public.ask(trick())).json().get("verdict") for trick in tricks]
        assert set(said[BUDGET.asker :]) <= {"found", None}


@pytest.mark.long
async def test_a_crowd_forges_nothing(service: Any) -> None:
    """Hill climbing from drafts that have no mark, where the tier's rate is as coarse as it may be."""

    async def forged(seed: int) -> float:
        async with public_service(service, UNCOUNTED, guests=True, rate=1e-2) as public:
            crowd: Any = Crowd(public)
            return await log10_p(service, await forge(crowd, 200, seed), "combined")

    assert min([await forged(seed) for seed in (1, 2)]) > -3


@pytest.mark.long
async def test_removal_by_bisection_is_no_better_than_with_the_first_answers(service: Any) -> None:
    """Once evidence is spent an answer says nothing of it: who goes on by answers keeps the mark."""
    text = await marked(service, 1, words=160)
    changed, log10_ps = [], []
    for budget in (UNCOUNTED, None):
        async with public_service(service, budget, guests=budget is not None) as public:
            crowd: Any = Crowd(public, None if budget else [public.token])
            words, count = await scrub(crowd, text, 60, 1)
            changed.append(count)
            log10_ps.append(await log10_p(service, words, "combined"))
    assert log10_ps[1] > -6  # where nothing stops it the mark is as good as gone
    assert log10_ps[0] <= -6 or changed[0] >= changed[1]


async def test_one_address_does_not_eat_the_day_of_the_others(service: Any) -> None:
    narrow = replace(BUDGET, address_words=200, token_words=1_000, tenant_words=1_000, address_requests=0)
    chance = random.Random(2)
    async with public_service(service, narrow, guests=True) as public:

        async def ask(address: str, size: int = 30) -> int:
            text = "".join(chance.choices("abcdefghijkl ", k=size))
            return (await public.ask(text, token=None, address=address)).status_code

        greedy = [await ask("192.0.2.1") for _ in range(40)]
        assert greedy.count(200) == 4  # of fifty words at least
        assert await ask("192.0.2.2") == 200
        # IPv6 addresses of one network are one asker; an address is the same however it is written.
        six = [await ask(f"2001:db8:0:1::{number:x}") for number in range(1, 9)]
        assert six.count(200) == 4
        assert await ask("::ffff:192.0.2.1") == 429
        assert await ask("2001:db8:0:2::1") == 200
    throttled = [event for event in public.audited if event.action == "token.throttle"]
    assert {event.said["reason"] for event in throttled} == {"words"}


async def test_refused_words_are_given_back(service: Any) -> None:
    narrow = replace(BUDGET, address_words=10_000, token_words=100, tenant_words=0, address_requests=0)
    counters = LocalCounters()
    async with public_service(service, narrow, guests=True, counters=counters) as public:
        answers = [await public.ask("a" * 12 * number, token=None) for number in range(1, 12)]
        assert [answer.status_code for answer in answers].count(200) == 2
    used = [sum(parts.values()) for name, (parts, _) in counters._values.items() if ".address:" in name]
    assert max(used) == 100


async def test_an_address_that_floods_is_stopped_before_the_token_counts_it(service: Any) -> None:
    async with public_service(service, BUDGET, guests=True) as public:
        answers = [await public.ask("x" * number, token=None) for number in range(1, 31)]
        statuses = [answer.status_code for answer in answers]
        assert statuses == [200] * 20 + [429] * 10
        assert int(answers[-1].headers["retry-after"]) <= 60
        assert [event.action for event in public.audited].count("token.throttle") == 0


async def test_no_header_makes_another_address_of_an_asker(service: Any) -> None:
    names = ("X-Forwarded-For", "Forwarded", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP")
    async with public_service(service, replace(BUDGET, address_requests=2), guests=True) as public:
        for number, name in enumerate(names):
            asked = {"address": f"192.0.2.{number + 1}", "token": None}
            statuses = [
                (await public.ask("a text", **asked, **{name: f"for=198.51.100.{other}"})).status_code
                for other in range(4)
            ]
            assert statuses == [200, 200, 429, 429], name


@pytest.mark.parametrize("address", ["", "testclient", "/run/socket", "1.2.3.4.5", "a" * 1000])
def test_what_is_no_address_is_one_asker(address: str) -> None:
    assert subscriber(address) == ""


def test_names_of_guests_are_few_and_tell_no_address() -> None:
    async def admit(_: str) -> None:
        return None

    def name(address: str, key: bytes = b"k") -> str:
        return Guests(PUBLIC_PATH, "t", key, admit)._name((address, 1))

    names = {name(f"10.{number // 65536}.{number // 256 % 256}.{number % 256}") for number in range(16_000)}
    assert 6_800 < len(names) <= 8_192
    assert name("10.0.0.1") != name("10.0.0.1", b"another")
    assert repr(Guests(PUBLIC_PATH, "secret", b"k", admit)) == "<Guests>"
    empty = Headers({"Authorization": ""})
    scope = {"method": "POST", "path": PUBLIC_PATH}
    assert not Guests(PUBLIC_PATH, "t", b"k", admit).are_asking(scope, empty)


@pytest.mark.parametrize(
    ("text", "words"), [("a", 50), ("a" * 300, 50), ("a" * 301, 51), ("字" * 6_000, 1_000)]
)
def test_a_text_without_spaces_has_words(text: str, words: int) -> None:
    assert words_of(text) == words


async def test_public_mails_with_one_signature_are_all_answered(service: Any) -> None:
    async with public_service(service, UNCOUNTED, guests=True) as public:
        for number, mail in enumerate(mails(40, 60)):
            answer = await public.ask(mail, token=None, address=f"192.0.2.{number}")
            assert (answer.status_code, answer.json()["verdict"]) == (200, "not_found")
