"""From a conversation to the text that the model continues, by the tokenizer's own template."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from shared.http.errors import BadRequest
from shared.schemas.chat import ChatMessage


class ChatTemplate:
    """A Jinja template as Hugging Face tokenizers carry it, run in a sandbox.

    Args:
        source: the template.
        special_tokens: names such as `bos_token` and their texts.

    Raises:
        ValueError: the template has a syntax error.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str] | None = None) -> None:
        # Chat templates are written for these two settings.
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = _strftime_now
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise ValueError(f"the chat template is not valid: {error}") from error
        self._special_tokens = dict(special_tokens or {})

    def render(self, messages: Sequence[ChatMessage]) -> str:
        """The prompt: the conversation and the opening of the assistant's next message.

        Raises:
            BadRequest: the template refuses this conversation, for instance its order of roles.
        """
        try:
            return self._template.render(
                messages=[{"role": _role(message), "content": message.text} for message in messages],
                add_generation_prompt=True,
                **self._special_tokens,
            )
        except TemplateError as error:
            raise BadRequest(
                f"The model's chat template refuses these messages: {error}", param="messages"
            ) from error
        except Exception as error:  # a template is foreign code
            raise BadRequest(
                "The model's chat template fails on these messages.", param="messages"
            ) from error


def _role(message: ChatMessage) -> str:
    return "system" if message.role == "developer" else message.role


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.now().astimezone().strftime(pattern)
