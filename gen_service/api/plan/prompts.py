"""Prompts as token ids, checked against the model."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool

from ttmark.shared.features import modules_of
from ttmark.shared.http.service_errors import BadRequest, ContextLengthExceeded, UnsupportedFeature
from ttmark.shared.languages.words import counted
from ttmark.shared.schemas.generation.chat import ChatMessage
from ttmark.shared.tokenization import TextTokenizer, encode_whole

if TYPE_CHECKING:  # the library, which takes prompts from here, needs no service
    from ttmark.gen_service.api.plan.served_model import Generator, ServedModel

_QUICK_CHARACTERS = 1_000  # tokenised in a millisecond; beside a busy engine a thread's turns take longer


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a completion continues, as the client gave it and as the model reads it."""

    text: str
    token_ids: tuple[int, ...]


@cache
def _cleaners() -> tuple[Callable[[str], str], ...]:
    return tuple(module.cleaned for module in modules_of("prompt_text", "ttmark.gen_service.features"))


def readable(text: str) -> str:
    """The text without what says nothing to a model, as optional features know it."""
    for cleaned in () if text.isascii() else _cleaners():
        text = cleaned(text)
    return text


def text_ids(text: str, tokenizer: TextTokenizer) -> list[int]:
    """Token ids of a text but for its manifests, with those that its tokenizer puts around every text."""
    return encode_whole(tokenizer.backend, readable(text), special=True).ids


async def plain_prompts(given: Sequence[str | list[int]], model: "ServedModel") -> list[Prompt]:
    """Prompts as they were given but for manifests: all of the model's input, control tokens included.

    Raises:
        BadRequest: a token id is not in the vocabulary.
        ContextLengthExceeded: a prompt is too long whatever its tokens are, which costs nothing to see.
    """
    prompts = [readable(prompt) if isinstance(prompt, str) else prompt for prompt in given]
    for prompt in prompts:
        check_text(prompt, model, "prompt")
    return [
        await _from_text(prompt, model.generator)
        if isinstance(prompt, str)
        else Prompt(model.generator.tokenizer.decode(prompt), tuple(prompt))
        for prompt in prompts
    ]


async def chat_prompt(
    messages: Sequence[ChatMessage],
    model: "ServedModel",
    *,
    field: str,
    earlier_answer: Callable[[str], str] = str,
    tools: Sequence[Mapping[str, Any]] = (),
    variables: Mapping[str, Any] = MappingProxyType({}),
    opens_answer: bool = True,
) -> Prompt:
    """The conversation as the model's chat template writes it; the template sets special tokens itself.

    `field` is what the request calls it; of an `earlier_answer` are the model's words.
    The template shows the `tools` to the model, and reads the `variables`. With
    `opens_answer` the opening of an answer ends it.

    Raises:
        UnsupportedFeature: the tokenizer has no chat template.
        BadRequest: the template refuses the conversation, a message may not hold a control token, or a tool's
            result answers no call.
        ContextLengthExceeded: it is too long whatever its tokens are.
    """
    if (conversations := model.conversations) is None:
        raise UnsupportedFeature(
            "The model's tokenizer has no chat template; use /v1/completions.", param=field
        )

    def encoded() -> tuple[str, Sequence[int]]:
        _check_results(messages, field)
        seen, most = [as_seen(message, earlier_answer) for message in messages], model.most_characters
        shown = len(json.dumps([*tools, dict(variables)], ensure_ascii=False)) if tools or variables else 0
        if sum(map(_characters, seen)) + shown > most:
            raise _too_many_characters("The messages have", model, field)
        return conversations.encode(seen, field, most, tools, variables, opens_answer=opens_answer)

    return _prompt(*await run_in_threadpool(encoded))


def check_text(text: str | list[int], model: "ServedModel", field: str) -> None:
    """Refuses what the model cannot read whatever its tokens are; `field` is what the request calls it.

    Raises:
        BadRequest: a token id is not in the vocabulary.
        ContextLengthExceeded: it is too long, which costs nothing to see.
    """
    subject, generator = f"The {field.replace('_', ' ')} has", model.generator
    if isinstance(text, str):
        if len(text) > model.most_characters:
            raise _too_many_characters(subject, model, field)
        return
    limit = generator.context_length
    if len(text) > limit:
        raise ContextLengthExceeded(
            f"{context_limit(limit)} {subject} {len(text)} tokens, "
            f"{counted(len(text) - limit, 'token')} over.",
            param=field,
        )
    if max(text) >= generator.vocab_size:
        raise BadRequest(
            f"{field}: token ids must be below the vocabulary size, {generator.vocab_size}.", param=field
        )


def context_limit(tokens: int) -> str:
    """How each message about a full context begins: as OpenAI's does, by which clients know it."""
    return f"This model's maximum context length is {tokens} tokens."


def _too_many_characters(subject: str, model: "ServedModel", field: str) -> ContextLengthExceeded:
    return ContextLengthExceeded(
        f"{context_limit(model.generator.context_length)} {subject} more than "
        f"{model.most_characters} characters, which are more than it can hold.",
        param=field,
    )


def check_room(prompt_tokens: int, max_tokens: int, context_length: int, field: str) -> None:
    """Refuses what does not fit the model; `field` is what the request calls `max_tokens`.

    Raises:
        ContextLengthExceeded: naming the numbers.
    """
    over = prompt_tokens + max_tokens - context_length
    if over > 0:
        raise ContextLengthExceeded(
            f"{context_limit(context_length)} The prompt has {counted(prompt_tokens, 'token')} and {field} "
            f"is {max_tokens}, together {counted(over, 'token')} over.",
            param=field,
        )


def _check_results(messages: Sequence[ChatMessage], field: str) -> None:
    called: set[str] = set()
    for message in messages:
        called.update(call.id for call in message.tool_calls or ())
        if message.role == "tool" and message.tool_call_id not in called:
            wrong = str(message.tool_call_id)[:64]
            raise BadRequest(
                f"{field}: a tool's result is for the call {wrong!r}, which nobody made before.", param=field
            )


def _characters(message: ChatMessage) -> int:
    calls = sum(len(call.function.arguments) for call in message.tool_calls or ())
    return len(message.text) + len(message.thoughts or "") + calls


def as_seen(message: ChatMessage, earlier_answer: Callable[[str], str] = str) -> ChatMessage:
    """The message without manifests, thousands of tokens that say nothing; of an answer the model's words."""
    text = readable(message.text)
    if message.role == "assistant":
        text = earlier_answer(text)
    return message if text == message.text else message.model_copy(update={"content": text})


async def _from_text(text: str, generator: "Generator") -> Prompt:
    encode = partial(text_ids, text, generator.tokenizer)
    # A long text takes tens of milliseconds, in which the other streams must go on.
    return _prompt(text, await run_in_threadpool(encode) if len(text) > _QUICK_CHARACTERS else encode())


def _prompt(text: str, token_ids: Sequence[int]) -> Prompt:
    if not token_ids:
        raise BadRequest("prompt: holds no tokens.", param="prompt")
    return Prompt(text, tuple(token_ids))
