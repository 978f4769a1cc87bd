"""min_tokens, stop_token_ids, bad_words and chat_template_kwargs do as in vLLM, and the mark stays."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from ttmark.gen_service.api.conversation.chat_template import ChatTemplate

FILTERS = {"temperature": 1.0, "top_k": 6}
ASKED = FILTERS | {"seed": 3, "return_token_ids": True, "tokens": 160}
END = 256


def choice(service: Any, **change: Any) -> dict[str, Any]:
    body = service.answer("completions", **ASKED | change)
    return {"watermark": body["watermark"], **body["choices"][0]}


def verdict(service: Any, token_ids: list[int]) -> str:
    found = service.log10_p(token_ids, prompt="Once", **FILTERS) <= -5
    return "watermarked" if found else "not_detected"


def test_words_that_are_bad_do_not_come_and_the_text_is_marked_all_the_same(real: Any) -> None:
    plain = choice(real, ignore_eos=True)
    letters = [token for token in plain["token_ids"] if chr(token).isascii() and chr(token).isalnum()]
    pair = Counter(pairwise(plain["text"])).most_common(1)[0][0]
    words = [chr(Counter(letters).most_common(1)[0][0]), "".join(pair)]
    held = choice(real, ignore_eos=True, bad_words=words)
    assert all(word in plain["text"] and word not in held["text"] for word in words)
    assert len(held["token_ids"]) == 160
    assert held["watermark"]["watermarked_blocks"] > 40
    assert verdict(real, held["token_ids"]) == "watermarked"
    assert verdict(real, choice(real, ignore_eos=True, bad_words=words, temperature=0)["token_ids"]) != (
        "watermarked"
    )


def test_a_text_does_not_end_before_the_least_of_its_tokens(real: Any) -> None:
    eager = {"logit_bias": {str(END): 9}}
    short, ends = choice(real, **eager), choice(real)["token_ids"]
    assert len(short["token_ids"]) < 20 <= len(ends)
    long = choice(real, **eager, min_tokens=100)
    assert long["token_ids"].index(END) + 1 == len(long["token_ids"]) > 100
    assert long["finish_reason"] == "stop"
    assert verdict(real, long["token_ids"][:-1]) == "watermarked"
    stop = choice(real, min_tokens=100, ignore_eos=True, stop=["e", "a", " "])
    assert len(stop["token_ids"]) > 100 or stop["finish_reason"] == "length"


def test_a_stop_token_ends_the_text_and_is_no_part_of_it(real: Any) -> None:
    token = Counter(choice(real, ignore_eos=True)["token_ids"]).most_common(1)[0][0]
    cut = choice(real, ignore_eos=True, stop_token_ids=[token])
    assert cut["token_ids"].index(token) + 1 == len(cut["token_ids"]) < 160
    assert cut["finish_reason"] == "stop"
    assert cut["text"] == real.generator.tokenizer.decode(cut["token_ids"][:-1])
    later = choice(real, ignore_eos=True, stop_token_ids=[token], min_tokens=50)["token_ids"]
    assert token not in later[:50]
    assert len(later) > 50


@pytest.mark.parametrize("more", [{"min_tokens": 2}, {"bad_words": ["a"]}])
def test_beside_a_schema_they_could_leave_nothing_and_are_refused(fake: Any, more: dict[str, Any]) -> None:
    error = fake.post("chat/completions", response_format={"type": "json_object"}, **more).json()["error"]
    assert error["message"] == (
        f"{error['param']}: not available together with tools or a form of the answer."
    )
    assert error["param"] in more


def test_a_chat_template_reads_the_variables_of_the_request(fake: Any) -> None:
    for variables in (None, {}, {"mood": "gay"}, {"mood": "sad"}, {"else": 1}):
        fake.answer("chat/completions", chat_template_kwargs=variables)
    prompts = [request.prompt_ids for request in fake.generator.requests]
    assert prompts[0] == prompts[1] == prompts[4]
    assert len({prompts[0], prompts[2], prompts[3]}) == 3
    for name in ("messages", "tools", "add_generation_prompt"):
        response = fake.post("chat/completions", chat_template_kwargs={name: []})
        error = response.json()["error"]
        assert error["message"] == f"chat_template_kwargs: {name} is set by the service."
        assert (response.status_code, error["param"]) == (400, "chat_template_kwargs")


def test_a_variable_cannot_take_the_place_of_a_special_token() -> None:
    template = ChatTemplate("{{ bos_token }}{{ mood }}", {"bos_token": "<s>"})
    assert template.render([], variables={"mood": "gay"}) == "<s>gay"
    with pytest.raises(Exception, match="bos_token is set by the service"):
        template.render([], variables={"bos_token": "no"})
