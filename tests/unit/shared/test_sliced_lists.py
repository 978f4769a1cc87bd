"""Long lists are validated a slice at a time, with the same result and the same words as in one."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from ttmark.shared.schemas import fields, slices
from ttmark.shared.schemas.detection.detect import Document
from ttmark.shared.schemas.detection.jobs import JobRequest
from ttmark.shared.schemas.generation.chat import ChatRequest
from ttmark.shared.schemas.generation.completions import CompletionRequest

MESSAGE, WRONG = {"role": "user", "content": "a"}, {"role": "user", "content": 1}
PART = {"type": "text", "text": "a"}
RIGHT = [
    (Document, {"token_ids": [*range(20_000), 7.0]}),
    (JobRequest, {"inputs": [{"text": "a"}] * 10_000}),
    (ChatRequest, {"model": "m", "messages": [MESSAGE] * 9_000}),
    (ChatRequest, {"model": "m", "messages": [{"role": "user", "content": [PART] * 9_000}]}),
    (CompletionRequest, {"model": "m", "prompt": [300] * 100_000}),
]
MISTAKES = [
    (Document, {"token_ids": [1] * 20_000 + [-1] * 9}, ("token_ids", 20_000)),
    (JobRequest, {"inputs": [{"text": "a"}] * 300 + [{"text": 1}]}, ("inputs", 300, "text")),
    (ChatRequest, {"model": "m", "messages": [MESSAGE] * 300 + [WRONG]}, ("messages", 300, "content")),
]


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of what is validated at a time."""
    given: list[int] = []

    def watched(value: list[Any], size: int, before: Any, handler: Any) -> list[Any]:
        def counted(part: list[Any]) -> Any:
            given.append(len(part))
            return handler(part)

        return slices.sliced(value, size, before, counted)

    monkeypatch.setattr(fields, "sliced", watched)
    return given


@pytest.mark.parametrize(("body", "value"), RIGHT)
def test_no_more_is_validated_at_a_time_than_a_slice(
    body: Any, value: dict[str, Any], sizes: list[int]
) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(body)
    made = adapter.validate_python(value)
    assert made.model_dump(include=value.keys(), exclude_unset=True) == value
    assert max(sizes) <= (256 if body in (JobRequest, ChatRequest) else 8_192)


@pytest.mark.parametrize(("body", "value", "place"), MISTAKES)
def test_what_is_wrong_has_its_place_in_the_whole_list_and_ends_it(
    body: Any, value: dict[str, Any], place: tuple[Any, ...]
) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(body).validate_python(value)
    assert [error["loc"] for error in caught.value.errors()] == [place]


def test_values_that_are_very_many_are_refused_before_they_are_validated() -> None:
    many: list[dict[str, Any]] = [
        {"chat_template_kwargs": {"a": [[1] * 100] * 100}},
        {"logit_bias": dict.fromkeys(map(str, range(2_000)), 1)},
    ]
    for fields_of_it in many:
        with pytest.raises(ValidationError, match="must map at most"):
            ChatRequest.model_validate({"model": "m", "messages": [MESSAGE], **fields_of_it})
