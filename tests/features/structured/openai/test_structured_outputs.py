"""vLLM's structured outputs, and the forms of `response_format` beside JSON: an answer is as they say."""

import json
import re
from typing import Any

import pytest

SCHEMA = {"type": "object", "properties": {"a": {"enum": [1, 22]}}, "required": ["a"]}
SCHEMA |= {"additionalProperties": False}
LARK = 'start: greeting " " NAME\ngreeting: "hello" | "bye"\nNAME: /[A-Z][a-z]{2}/\n'
GBNF = 'root ::= greeting " " [A-Z] [a-z] [a-z]\ngreeting ::= "hello" | "bye"\n'
CHOICE = ["yes", 'n"o\n', "maybe\u00e9"]
GREETING = re.compile(r"(hello|bye) [A-Z][a-z]{2}")
CHAT = {"messages": [{"role": "user", "content": "Hi"}]}
PROMPT = {"prompt": "Once"}
CHATS, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def is_of_schema(text: str) -> bool:
    return json.loads(text) in ({"a": 1}, {"a": 22})


def is_greeting(text: str) -> bool:
    return GREETING.fullmatch(text) is not None


def is_digits(text: str) -> bool:
    return re.fullmatch("[0-9]{3}-[0-9]{2}", text) is not None


DIGITS = "[0-9]{3}-[0-9]{2}"


@pytest.mark.parametrize(
    ("form", "holds"),
    [
        ({"guided_json": SCHEMA}, is_of_schema),
        ({"guided_json": json.dumps(SCHEMA)}, is_of_schema),
        ({"guided_regex": DIGITS}, is_digits),
        ({"guided_choice": CHOICE}, CHOICE.__contains__),
        ({"guided_grammar": LARK}, is_greeting),
        ({"structured_outputs": {"json": SCHEMA}}, is_of_schema),
        ({"structured_outputs": {"regex": DIGITS}}, is_digits),
        ({"structured_outputs": {"choice": CHOICE, "regex": None}}, CHOICE.__contains__),
        ({"structured_outputs": {"grammar": GBNF}}, is_greeting),
        ({"response_format": {"type": "regex", "regex": DIGITS}}, is_digits),
        ({"response_format": {"type": "choice", "choice": CHOICE}}, CHOICE.__contains__),
        ({"response_format": {"type": "grammar", "grammar": LARK}}, is_greeting),
    ],
)
def test_an_answer_is_what_its_form_says(real: Any, form: dict[str, Any], holds: Any) -> None:
    for path, prompt in ((CHATS, CHAT), (COMPLETIONS, PROMPT)):
        if path == COMPLETIONS and "response_format" in form:
            continue
        asked = {"model": "tiny", **prompt, "max_tokens": 60, "n": 4, "seed": 1, **form}
        response = real.http().post(path, json=asked)
        assert response.status_code == 200, response.text
        for choice in response.json()["choices"]:
            text = choice["text"] if path == COMPLETIONS else choice["message"]["content"]
            assert (holds(text), choice["finish_reason"]) == (True, "stop"), text


def test_a_form_carries_the_mark_where_it_leaves_a_choice(real: Any) -> None:
    asked = {"model": "tiny", **PROMPT, "max_tokens": 200, "seed": 1, "temperature": 1, "top_k": 6}
    block = real.http().post(COMPLETIONS, json=asked | {"guided_regex": "(?s:.{0,300})"}).json()["watermark"]
    assert block["watermarked_blocks"] > 10, block


REGEX = {"guided_regex": "a"}
BESIDE = "not available together with"
ONE_OF = "structured_outputs: must have one of json, regex, choice, grammar and json_object; it has"


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (REGEX | {"response_format": {"type": "json_object"}}, f"guided_regex: {BESIDE} response_format."),
        (REGEX | {"guided_choice": ["b"]}, f"guided_choice: {BESIDE} guided_regex."),
        (
            {"guided_json": SCHEMA, "structured_outputs": {"choice": ["b"]}},
            f"guided_json: {BESIDE} structured_outputs.choice.",
        ),
        ({"structured_outputs": {"choice": ["b"], "json_object": True}}, f"{ONE_OF} choice, json_object."),
        ({"structured_outputs": {}}, f"{ONE_OF} none."),
        ({"guided_json": "[1]"}, "guided_json: must be a JSON schema, as an object or as its text."),
        (REGEX | {"ignore_eos": True}, f"ignore_eos: {BESIDE} guided_regex."),
        (
            REGEX | {"tools": [{"type": "function", "function": {"name": "f"}}]},
            f"guided_regex: {BESIDE} tools.",
        ),
        (
            {"guided_grammar": 'start: %json {"uniqueItems": true}'},
            "guided_grammar: %json, %regex and %llguidance are not available.",
        ),
    ],
)
def test_what_contradicts_a_form_is_refused_in_one_line(fake, form, message):
    response = fake.http().post(CHATS, json={"model": "tiny", **CHAT, **form})
    error = response.json()["error"]
    assert (response.status_code, error["message"]) == (400, message)
    assert error["param"] == message.partition(":")[0]


@pytest.mark.parametrize(
    "form",
    [
        {"guided_regex": "(?=a)b"},
        {"guided_regex": "("},
        {"guided_grammar": "start: nothing"},
        {"guided_grammar": "root ::= ((("},
        {"guided_grammar": "root ::= " + "(" * 20_000},
        {"guided_choice": []},
        {"guided_choice": [""]},
        {"guided_choice": ["a"] * 1025},
        {"structured_outputs": {"structural_tag": "a"}},
        {"response_format": {"type": "choice"}},
    ],
)
def test_what_cannot_be_kept_to_is_refused_by_field(fake: Any, form: dict[str, Any]) -> None:
    response = fake.http().post(CHATS, json={"model": "tiny", **CHAT, **form})
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "invalid_request"), error
    assert error["param"].startswith(next(iter(form)))
    assert "\n" not in error["message"]
