"""Prompts as token ids, checked against the model."""

from dataclasses import dataclass
from functools import partial

from starlette.concurrency import run_in_threadpool

from gen_service.api.backend import ServedModel
from gen_service.api.generator import Generator
from shared.http.errors import BadRequest, ContextLengthExceeded, UnsupportedFeature
from shared.schemas.chat import ChatRequest
from shared.schemas.completions import CompletionRequest

_QUICK_CHARACTERS = 1_000  # tokenised in a millisecond; beside a busy engine a thread's turns take longer


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a completion continues, as the client gave it and as the model reads it."""

    text: str
    token_ids: tuple[int, ...]


async def completion_prompts(body: CompletionRequest, generator: Generator) -> list[Prompt]:
    """The prompts of a completion request, in order.

    Raises:
        BadRequest: a token id is not in the vocabulary.
    """
    return [
        await _from_text(prompt, generator, special_tokens=True)
        if isinstance(prompt, str)
        else _from_token_ids(prompt, generator)
        for prompt in body.prompts
    ]


async def chat_prompt(body: ChatRequest, model: ServedModel) -> Prompt:
    """The conversation as the model's chat template writes it; the template sets special tokens itself.

    Raises:
        UnsupportedFeature: the tokenizer has no chat template.
        BadRequest: the template refuses the conversation.
    """
    if model.chat_template is None:
        raise UnsupportedFeature(
            "The model's tokenizer has no chat template; use /v1/completions.", param="messages"
        )
    text = await run_in_threadpool(model.chat_template.render, body.messages)
    return await _from_text(text, model.generator, special_tokens=False)


def check_room(prompt_tokens: int, max_tokens: int, context_length: int) -> None:
    """Refuses what does not fit the model.

    Raises:
        ContextLengthExceeded: naming the numbers.
    """
    if prompt_tokens + max_tokens > context_length:
        raise ContextLengthExceeded(
            f"The prompt has {prompt_tokens} tokens and max_tokens is {max_tokens}, together more than the "
            f"model's context length of {context_length} tokens.",
            param="max_tokens",
        )


async def _from_text(text: str, generator: Generator, *, special_tokens: bool) -> Prompt:
    encode = partial(generator.tokenizer.backend.encode, text, add_special_tokens=special_tokens)
    # A long text takes tens of milliseconds, in which the other streams must go on.
    encoding = await run_in_threadpool(encode) if len(text) > _QUICK_CHARACTERS else encode()
    if not encoding.ids:
        raise BadRequest("prompt: holds no tokens.", param="prompt")
    return Prompt(text, tuple(encoding.ids))


def _from_token_ids(token_ids: list[int], generator: Generator) -> Prompt:
    if max(token_ids) >= generator.vocab_size:
        raise BadRequest(
            f"prompt: token ids must be below the vocabulary size, {generator.vocab_size}.", param="prompt"
        )
    return Prompt(generator.tokenizer.decode(token_ids), tuple(token_ids))
