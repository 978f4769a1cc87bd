"""The official `openai` client works unchanged, synchronous and asynchronous, streamed and not."""

import json
import time
from typing import Any

import openai
import pytest

MODEL = "tiny"
# Few candidates: the random model of the tests has a flat distribution.
NARROW = {"top_k": 4}
ENDLESS = NARROW | {"ignore_eos": True}
MESSAGES: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]


def complete(service: Any, **more: Any) -> Any:
    """A completion, or the chunks of a stream."""
    asked = {"model": MODEL, "prompt": "Once", "extra_body": NARROW}
    return service.client().completions.create(**asked | more)


def chat(service: Any, **more: Any) -> Any:
    asked = {"model": MODEL, "messages": MESSAGES, "extra_body": NARROW}
    return service.client().chat.completions.create(**asked | more)


def test_a_completion_has_text_usage_and_a_watermark(service: Any) -> None:
    completion = complete(service, max_tokens=20, extra_body=ENDLESS)
    assert completion.object == "text_completion"
    assert completion.model == MODEL
    assert completion.choices[0].text
    assert completion.choices[0].finish_reason == "length"
    assert completion.usage.prompt_tokens == service.tokens("Once")
    assert completion.usage.completion_tokens == 20
    assert completion.usage.total_tokens == service.tokens("Once") + 20
    watermark = completion.model_extra["watermark"]
    assert watermark["status"] in ("watermarked", "partial")
    assert watermark["key_id"] == "acme-main"
    assert watermark["key_version"] == 3
    assert watermark["profile"].startswith("synthid-r2-")
    assert watermark["blocks"] == 10
    assert watermark["watermarked_blocks"] + sum(watermark["reasons"].values()) == 10


def test_a_stream_adds_up_to_the_completion_with_the_same_seed(service: Any) -> None:
    whole = complete(service, max_tokens=21, seed=7)
    chunks = list(complete(service, max_tokens=21, seed=7, stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason
    assert all(chunk.choices[0].finish_reason is None for chunk in chunks[:-1])
    assert chunks[-1].model_extra["watermark"] == whole.model_extra["watermark"]
    assert all("watermark" not in chunk.model_extra for chunk in chunks[:-1])
    assert {chunk.id for chunk in chunks} == {chunks[0].id}


def test_usage_comes_in_a_last_chunk_of_its_own_when_asked_for(service: Any) -> None:
    counted = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(complete(service, max_tokens=6, extra_body=ENDLESS, **counted))
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 6
    assert chunks[-1].model_extra["watermark"]["blocks"] == 3
    assert all(chunk.usage is None and "watermark" not in chunk.model_extra for chunk in chunks[:-1])


def test_usage_says_how_much_of_a_prompt_was_in_the_cache(service: Any) -> None:
    asked = {"model": MODEL, "prompt": f"{time.time_ns()} went home. " * 4, "max_tokens": 4}
    prompt_tokens = service.tokens(asked["prompt"])
    assert prompt_tokens > 40
    first = service.client().completions.create(**asked)
    again = service.client().completions.create(**asked)
    *_, streamed = service.client().completions.create(
        **asked, stream=True, stream_options={"include_usage": True}
    )
    reused = [each.usage.prompt_tokens_details.cached_tokens for each in (first, again, streamed)]
    assert reused[0] == 0
    assert 32 <= reused[1] == reused[2] < prompt_tokens
    assert again.usage.prompt_tokens == prompt_tokens
    responses = {"model": MODEL, "input": asked["prompt"], "max_output_tokens": 16}
    answer, twice = (service.client().responses.create(**responses) for _ in range(2))
    assert answer.usage.input_tokens_details.cached_tokens < 32
    assert twice.usage.input_tokens_details.cached_tokens >= 32


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_chunks_before_the_token_counts_say_that_there_are_none_yet(service, path, asked):
    prompt = {"prompt": "Once"} if path == "/v1/completions" else {"messages": MESSAGES}
    body = {"model": MODEL, "max_tokens": 6, "stream": True, "stream_options": {"include_usage": asked}}
    with service.http().stream("POST", path, json=body | prompt) as response:
        lines = [line for line in response.iter_lines() if line.startswith("data: {")]
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines]
    if asked:
        *before, last = chunks
        assert last["usage"]["completion_tokens"] > 0
        assert before
        assert all(chunk["usage"] is None for chunk in before)
    else:
        assert all("usage" not in chunk for chunk in chunks)


def test_the_same_seed_gives_the_same_text_and_another_seed_another(service: Any) -> None:
    def text(seed: int) -> str:
        extra = {"top_k": 8, "ignore_eos": True}
        return str(complete(service, max_tokens=24, seed=seed, extra_body=extra).choices[0].text)

    assert text(11) == text(11)
    assert text(11) != text(-11)


def test_several_prompts_and_choices_come_in_order_and_differ(service: Any) -> None:
    extra = {"return_token_ids": True, "top_k": 8}
    completion = complete(service, prompt=["ab", "cde"], n=2, max_tokens=16, seed=1, extra_body=extra)
    choices = completion.choices
    assert [choice.index for choice in choices] == [0, 1, 2, 3]
    assert choices[0].text != choices[1].text
    prompts = [choice.model_extra["prompt_token_ids"] for choice in choices]
    assert prompts[0] == prompts[1] != prompts[2] == prompts[3]
    assert completion.usage.prompt_tokens == service.tokens("ab") + service.tokens("cde")
    assert completion.usage.completion_tokens == sum(len(c.model_extra["token_ids"]) for c in choices)


def test_the_first_of_several_choices_is_the_completion_that_comes_alone(service: Any) -> None:
    alone = complete(service, max_tokens=16, seed=5).choices[0].text
    assert complete(service, max_tokens=16, seed=5, n=2).choices[0].text == alone


def test_choices_are_told_apart_in_a_stream(service: Any) -> None:
    request: Any = {"prompt": ["ab", "cd"], "n": 2, "max_tokens": 9, "seed": 3}
    texts = [""] * 4
    for chunk in complete(service, **request, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert texts == [choice.text for choice in complete(service, **request).choices]


def test_a_prompt_of_token_ids_is_the_prompt_of_their_text(service: Any) -> None:
    ids = service.generator.tokenizer.encode("Once")
    texts = [
        complete(service, prompt=prompt, max_tokens=12, seed=2).choices[0].text
        for prompt in ("Once", ids, [ids])
    ]
    assert texts == [texts[0]] * 3


@pytest.mark.parametrize("stream", [False, True])
def test_echo_puts_the_prompt_in_front(service: Any, stream: bool) -> None:
    plain = complete(service, max_tokens=8, seed=2).choices[0].text
    answer = complete(service, max_tokens=8, seed=2, echo=True, stream=stream)
    echoed = "".join(chunk.choices[0].text for chunk in answer) if stream else answer.choices[0].text
    assert echoed == "Once" + plain


def test_a_stop_string_ends_the_text_in_front_of_it(service: Any) -> None:
    request: Any = {"max_tokens": 40, "seed": 4, "extra_body": {"top_k": 8, "ignore_eos": True}}
    free = complete(service, **request).choices[0].text
    stop = next(letter for letter in free[4:] if letter != "\ufffd")
    stopped = complete(service, **request, stop=[stop, "never there"]).choices[0]
    assert stopped.text == free[: free.index(stop)]
    assert stopped.finish_reason == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_completion_log_probabilities_are_parallel_lists(service: Any, stream: bool) -> None:
    answer = complete(service, max_tokens=8, logprobs=2, seed=6, stream=stream, extra_body=ENDLESS)
    choices = [part.choices[0] for part in (answer if stream else [answer])]
    pieces = [choice.logprobs for choice in choices]
    tokens = [token for piece in pieces for token in piece.tokens]
    assert len(tokens) == 8
    assert len([value for piece in pieces for value in piece.token_logprobs if value <= 0]) == 8
    # Parts of characters among them, which have names of their own.
    assert all(2 <= len(top) <= 3 for piece in pieces for top in piece.top_logprobs)
    offsets = [offset for piece in pieces for offset in piece.text_offset]
    text = "".join(choice.text for choice in choices)
    whole = [(token, at) for token, at in zip(tokens, offsets, strict=True) if not token.startswith("bytes:")]
    assert all(text.startswith(token, at) for token, at in whole)
    assert max(offsets) < len(text)


def test_a_chat_answer_is_a_message_of_the_assistant(service: Any) -> None:
    completion = chat(service, max_tokens=10, extra_body=ENDLESS)
    assert completion.object == "chat.completion"
    assert completion.choices[0].message.role == "assistant"
    assert completion.choices[0].message.content
    assert completion.usage.prompt_tokens == service.tokens("<system>Be brief.\n<user>Hello\n<assistant>")
    assert completion.usage.completion_tokens == 10
    assert completion.model_extra["watermark"]["status"] in ("watermarked", "partial")


def test_a_chat_stream_adds_up_to_the_message(service: Any) -> None:
    whole = chat(service, max_completion_tokens=15, seed=9)
    chunks = list(chat(service, max_completion_tokens=15, seed=9, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(chunk.choices[0].delta.role is None for chunk in chunks[1:])
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == whole.choices[0].message.content
    assert chunks[-1].model_extra["watermark"] == whole.model_extra["watermark"]


def test_chat_log_probabilities_list_alternatives(service: Any) -> None:
    completion = chat(service, max_tokens=4, logprobs=True, top_logprobs=3, extra_body=ENDLESS)
    entries = completion.choices[0].logprobs.content
    assert len(entries) == 4
    assert all(len(entry.top_logprobs) == 3 and entry.logprob <= 0 for entry in entries)
    parts = [entry for entry in entries if entry.token.startswith("bytes:")]
    assert all(entry.bytes == list(entry.token.encode()) for entry in entries if entry not in parts)
    assert all(entry.token == "bytes:" + "".join(f"\\x{b:02x}" for b in entry.bytes) for entry in parts)


def test_parts_of_a_content_are_lines_of_one_string(service: Any) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    one, other = (
        chat(service, messages=[{"role": "user", "content": content}], max_tokens=8, seed=1).choices
        for content in ("a\nb", parts)
    )
    assert one == other


def test_without_max_tokens_a_message_may_fill_the_context(service: Any) -> None:
    completion = chat(service, messages=[{"role": "user", "content": "x" * 180}], extra_body=ENDLESS)
    assert completion.usage.total_tokens == service.generator.context_length
    assert completion.choices[0].finish_reason == "length"


def test_models_show_tokenizer_and_profiles_of_the_caller(service: Any) -> None:
    client = service.client()
    listed = {model.id: model for model in client.models.list()}
    model = client.models.retrieve(MODEL)
    assert model.model_dump() == listed[MODEL].model_dump()
    assert model.model_extra["tokenizer_fingerprint"] == service.generator.tokenizer.fingerprint
    assert model.model_extra["context_length"] == 256
    (profile,) = model.model_extra["profiles"]
    assert profile["key_ids"] == ["acme-main", "acme-spare"]
    assert profile["scheme"] == "synthid"


def test_errors_arrive_as_the_exceptions_of_the_client(service: Any) -> None:
    client = service.client()
    request = {"prompt": "Once", "max_tokens": 4}
    with pytest.raises(openai.NotFoundError, match="no such model") as unknown_model:
        client.completions.create(model="gpt-9", **request)
    assert unknown_model.value.code == "model_not_found"
    assert unknown_model.value.param == "model"
    with pytest.raises(openai.AuthenticationError):
        service.client("wrong").completions.create(model=MODEL, **request)
    with pytest.raises(openai.PermissionDeniedError):
        service.client("detector").completions.create(model=MODEL, **request)
    with pytest.raises(openai.BadRequestError, match="max_tokens"):
        client.completions.create(model=MODEL, prompt="Once", max_tokens=0)
