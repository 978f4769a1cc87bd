"""From a conversation to the text that the model continues, by the tokenizer's own template."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from jinja2 import TemplateError

from ttmark.gen_service.api.template_sandbox import BoundedEnvironment, TemplateTooLarge
from ttmark.gen_service.api.tool_formats import format_of
from ttmark.gen_service.api.turns import turns, turns_in_words
from ttmark.shared.http.service_errors import BadRequest, ContextLengthExceeded
from ttmark.shared.schemas.chat import ChatMessage

_STEPS = 1_000_000
# Of the prompt's limit: a template joins and copies what it writes several times.
_COPIES = 16
_MOST_CHARACTERS = 1_000_000
_OURS = frozenset({"messages", "tools", "add_generation_prompt"})


class ChatTemplate:
    """A Jinja template as Hugging Face tokenizers carry it, run in a sandbox with a budget.

    Args:
        source: the template.
        special_tokens: names such as `bos_token` and their texts.

    Raises:
        ValueError: the template has a syntax error.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str] | None = None) -> None:
        self._environment = BoundedEnvironment()
        try:
            self._template = self._environment.from_string(source)
        except TemplateError as error:
            raise ValueError(f"the chat template is not valid: {error}") from error
        self._special_tokens = dict(special_tokens or {})
        self.source = source
        self.tool_format = format_of(source)

    def render(
        self,
        messages: Sequence[ChatMessage],
        field: str = "messages",
        most: int = _MOST_CHARACTERS,
        tools: Sequence[Mapping[str, Any]] = (),
        variables: Mapping[str, Any] = MappingProxyType({}),
        *,
        opens_answer: bool = True,
    ) -> str:
        """The prompt: the conversation and, if it `opens_answer`, the opening of the next message.

        Args:
            field: what the request calls the conversation.
            most: characters that the prompt may have.
            tools: as OpenAI's chat API writes them.
            variables: further ones of the template.

        Raises:
            BadRequest: a variable is not the caller's to set; the template refuses this conversation, for
                instance its order of roles, or does too much on it.
            ContextLengthExceeded: the prompt is longer than `most`.
        """
        if taken := [name for name in variables if name in self._special_tokens or name in _OURS]:
            raise BadRequest(
                f"chat_template_kwargs: {taken[0]} is set by the service.", param="chat_template_kwargs"
            )
        try:
            with self._environment.spending(_STEPS + _COPIES * most):
                return self._written(
                    messages, field, most, tools, {**variables, "add_generation_prompt": opens_answer}
                )
        except ContextLengthExceeded:
            raise
        except TemplateTooLarge as error:
            raise BadRequest(
                f"The model's chat template cannot be used on these messages: {error}.", param=field
            ) from error
        except TemplateError as error:
            raise BadRequest(
                f"The model's chat template refuses these messages: {error}", param=field
            ) from error
        except Exception as error:  # a template is foreign code
            raise BadRequest("The model's chat template fails on these messages.", param=field) from error

    def _written(
        self,
        messages: Sequence[ChatMessage],
        field: str,
        most: int,
        tools: Sequence[Mapping[str, Any]],
        variables: Mapping[str, Any],
    ) -> str:
        pieces: list[str] = []
        written = 0
        taught = self.tool_format.taught
        told = turns(messages) if taught else turns_in_words(messages, tools)
        shown = {"tools": list(tools)} if tools and taught else {}
        for piece in self._template.generate(messages=told, **shown, **self._special_tokens, **variables):
            written += len(piece)
            if written > most:
                raise ContextLengthExceeded(
                    f"The messages are longer than the {most} characters that the model's context can hold.",
                    param=field,
                )
            pieces.append(piece)
        return "".join(pieces)
