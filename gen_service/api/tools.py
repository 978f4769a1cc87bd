"""The tools of one request: which may be called, and in which format."""

import secrets
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ttmark.gen_service.api.backend import ServedModel
from ttmark.gen_service.api.reasoning import Reasoning
from ttmark.gen_service.api.tool_formats import ToolFormat
from ttmark.gen_service.api.tool_grammar import tool_source
from ttmark.gen_service.decoding.grammar import GrammarSource
from ttmark.gen_service.decoding.json_grammar import SchemaRefused
from ttmark.shared.http.service_errors import BadRequest, UnsupportedFeature
from ttmark.shared.schemas.tools import Function, NamedTool, Tool, ToolChoice

_ID_SIGNS = string.ascii_letters + string.digits
_ID_LENGTH = 24


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What the model may call.

    Attributes:
        tools: all of the request's, which the model is shown.
        functions: those that it may call.
        must: whether it has to.
        several: whether it may call more than one.
        tag_token: the format's tag where it is a control token of the model.
    """

    form: ToolFormat
    tools: Sequence[Tool]
    functions: Sequence[Function]
    must: bool
    several: bool
    tag_token: int | None

    @property
    def shown(self) -> list[dict[str, Any]]:
        """The tools as chat templates read them."""
        return [tool.model_dump(exclude_none=True, exclude={"function": {"strict"}}) for tool in self.tools]

    def source(self, answer: Mapping[str, Any] | None, reasoning: Reasoning | None) -> GrammarSource:
        """The grammar of an answer; `answer` is the schema of one that is no call.

        Raises:
            SchemaRefused: the schemas are too large, all together.
            UnsupportedFeature: the model's calls could not be told from such an answer.
        """
        if answer is not None and not self.must and self.form.sign:
            raise UnsupportedFeature(
                "tools: not available together with a response format for this model, unless a call is "
                "required; its calls could not be told from other answers.",
                param="tools",
            )
        return tool_source(
            self.form,
            self.functions,
            must=self.must,
            several=self.several,
            answer=None if self.must else answer,
            tag_token=self.tag_token,
            reasoning=reasoning,
        )

    def at_fault(self, error: SchemaRefused) -> str:
        """The function whose schema is refused, if it is one."""
        number = (error.rule or "").removeprefix("call_")
        return f' parameters of "{self.functions[int(number)].name}":' if number.isdecimal() else ""

    def new_id(self) -> str:
        """An id for a call."""
        length = self.form.id_length or _ID_LENGTH
        drawn = "".join(secrets.choice(_ID_SIGNS) for _ in range(length))
        return drawn if self.form.id_length else f"call_{drawn}"


def tool_use(
    tools: Sequence[Tool] | None, choice: ToolChoice | None, several: bool | None, model: ServedModel
) -> ToolUse | None:
    """How a request uses tools; None where it has none, or may call none.

    Raises:
        BadRequest: two functions have one name, or the one to be called is not there.
        UnsupportedFeature: calls of this model do not show in its text.
    """
    if not tools:
        if choice not in (None, "none", "auto"):
            raise BadRequest("tool_choice: there are no tools.", param="tool_choice")
        return None
    functions = [tool.function for tool in tools]
    names = [function.name for function in functions]
    if len(set(names)) < len(names):
        raise BadRequest("tools: two functions have the same name.", param="tools")
    if isinstance(choice, NamedTool):
        functions = [each for each in functions if each.name == choice.function.name]
        if not functions:
            raise BadRequest("tool_choice: there is no such function in tools.", param="tool_choice")
    if choice == "none" or model.chat_template is None:
        return None
    form = model.chat_template.tool_format
    tag_token = model.control_token(form.tag) if form.tag else None
    if tag_token is not None and not form.sign:
        raise UnsupportedFeature(
            f"tools: {form.tag} is a control token of this model, which does not show in its text.",
            param="tools",
        )
    named = isinstance(choice, NamedTool)
    return ToolUse(
        form,
        tools,
        functions,
        must=named or choice == "required",
        several=several is not False and not named,
        tag_token=tag_token,
    )
