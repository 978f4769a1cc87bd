"""Control tokens such as `<|im_end|>`: those of the chat template count, those that users write are text."""

import json
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from tokenizers import Tokenizer

from ttmark.gen_service.api.conversation.chat_template import ChatTemplate, arguments_of
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.generation.chat import ChatMessage
from ttmark.shared.schemas.generation.tools import ToolCall
from ttmark.shared.tokenization import TextTokenizer, encode_whole

ControlTokenRule = Literal["text", "refuse", "control"]


class ConversationEncoder:
    """Token ids of a conversation as the chat template writes it.

    A twin of the tokenizer knows each control token under a name that nobody can guess. The template's own
    are renamed before it reads the prompt; what stood in a message stays, and is text to it. Everything else
    is read as by the tokenizer itself.

    Args:
        rule: what becomes of control tokens in messages: text, a refusal of the request, or control tokens.
    """

    def __init__(
        self, tokenizer: TextTokenizer, template: ChatTemplate, rule: ControlTokenRule = "text"
    ) -> None:
        self._template = template
        self._rule = rule
        self._backend = tokenizer.backend
        added = self._backend.get_added_tokens_decoder()
        self._control_ids = {token.content: id_ for id_, token in added.items() if token.special}
        self._unknown = self._backend.token_to_id(getattr(self._backend.model, "unk_token", None) or "")
        nonce = secrets.token_hex(16)
        self._names = {text: f"\ue000{nonce}{id_}\ue001" for text, id_ in self._control_ids.items()}
        self._in_messages = {text: f"\ue002{nonce}{id_}\ue003" for text, id_ in self._control_ids.items()}
        self._seam = f"\ue004{nonce}\ue005"
        # What a message may begin or end with to make a control token together with its neighbour.
        self._heads = tuple({text[:cut] for text in self._control_ids for cut in range(1, len(text))})
        self._tails = tuple({text[cut:] for text in self._control_ids for cut in range(1, len(text))})
        self._control = _any_of(self._control_ids)
        self._quoted = _any_of([self._seam, *self._in_messages.values()])
        self._texts = {quoted: text for text, quoted in self._in_messages.items()} | {self._seam: ""}
        self._twin = Tokenizer.from_str(_renamed(self._backend, self._names))
        self._twin.no_truncation()
        self._twin.no_padding()
        own = {token.content: id_ for id_, token in added.items()}
        own |= {name: self._control_ids[text] for text, name in self._names.items()}
        self._ids = {id_: own[token.content] for id_, token in self._twin.get_added_tokens_decoder().items()}

    def encode(
        self,
        messages: Sequence[ChatMessage],
        field: str,
        most: int,
        tools: Sequence[Mapping[str, Any]] = (),
        variables: Mapping[str, Any] = MappingProxyType({}),
        *,
        opens_answer: bool = True,
    ) -> tuple[str, tuple[int, ...]]:
        """The prompt, as text and as token ids; for the arguments see `ChatTemplate.render`.

        Raises:
            BadRequest: the template refuses the conversation; a message holds a control token and the rule
                is to refuse, or the tokenizer has no other way to read it.
            ContextLengthExceeded: the prompt has more characters than `most`.
        """
        if self._rule == "control" or not self._control_ids:
            text = self._template.render(messages, field, most, tools, variables, opens_answer=opens_answer)
            return text, tuple(encode_whole(self._backend, text).ids)
        shown = [self._quoted_value(tool, "tools") for tool in tools]
        given = self._quoted_value(variables, "chat_template_kwargs")
        quoted = [self._quote(each, field) for each in messages]
        rendered = self._template.render(quoted, field, most, shown, given, opens_answer=opens_answer)
        named = self._control.sub(lambda match: self._names[match[0]], rendered)
        plain = self._quoted.sub(lambda match: self._texts[match[0]], named)
        read = encode_whole(self._twin, plain).ids
        if not set(self._control_ids.values()).isdisjoint({*read} - self._ids.keys() - {self._unknown}):
            raise BadRequest(f"{field}: a control token stands in a message; leave it out.", param=field)
        text = self._quoted.sub(lambda match: self._texts[match[0]], rendered)
        return text, tuple(self._ids.get(id_, id_) for id_ in read)

    def _quote(self, message: ChatMessage, field: str) -> ChatMessage:
        """The message, with control tokens in it marked as text."""
        changed: dict[str, Any] = {"content": self._quoted_text(message.text, field)}
        if isinstance(message.content, list):
            parts = message.content
            changed["content"] = [
                part.model_copy(update={"text": self._quoted_text(part.text, field)}) for part in parts
            ]
        if message.thoughts is not None:
            changed["reasoning_content"] = self._quoted_text(message.thoughts, field)
        if message.tool_call_id is not None:
            changed["tool_call_id"] = self._quoted_text(message.tool_call_id, field)
        if message.tool_calls:
            changed["tool_calls"] = [self._quoted_call(call, field) for call in message.tool_calls]
        return message.model_copy(update=changed)

    def _quoted_call(self, call: ToolCall, field: str) -> ToolCall:
        # As a value: JSON has other ways to write a control token.
        text = json.dumps(self._quoted_value(arguments_of(call), field), ensure_ascii=False)
        function = call.function.model_copy(update={"arguments": text})
        return call.model_copy(update={"id": self._quoted_text(call.id, field), "function": function})

    def _quoted_value(self, value: Any, field: str) -> Any:
        """A JSON value, with control tokens in its texts and names marked as text."""
        if isinstance(value, str):
            return self._quoted_text(value, field)
        if isinstance(value, Mapping):
            return {
                self._quoted_text(name, field): self._quoted_value(each, field)
                for name, each in value.items()
            }
        return [self._quoted_value(each, field) for each in value] if isinstance(value, list) else value

    def _quoted_text(self, text: str, field: str) -> str:
        text, found = self._control.subn(lambda match: self._in_messages[match[0]], text)
        if found and self._rule == "refuse":
            raise BadRequest(f"{field}: a message holds a control token of the model.", param=field)
        if text.startswith(self._tails):
            text = self._seam + text
        return text + self._seam if text.endswith(self._heads) else text


def _any_of(texts: Collection[str]) -> re.Pattern[str]:
    """Finds any of `texts`, the longest first; nothing where there are none."""
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or r"(?!)")


def _renamed(backend: Tokenizer, names: dict[str, str]) -> str:
    """The tokenizer's description with other names for its control tokens."""
    description = json.loads(backend.to_str())
    description["post_processor"] = None  # adds special tokens, which the template has done
    for token in description["added_tokens"]:
        if token["content"] in names:
            token |= {"content": names[token["content"]], "normalized": False, "single_word": False}
    return json.dumps(description)
