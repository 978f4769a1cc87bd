"""Tools that a model may call, and its calls, as OpenAI's two chat APIs write them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, field_validator

from ttmark.shared.schemas.fields import Ignored, RequestPart, left_out, says

MAX_TOOLS = 128
FunctionName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")]


class Function(RequestPart):
    """What a tool does and takes."""

    name: FunctionName
    description: str | None = Field(default=None, description="For the model.")
    parameters: dict[str, Any] | None = Field(
        default=None,
        description="JSON schema of the arguments, an object.",
        json_schema_extra={"properties": {"type": {"const": "object"}}},
    )
    strict: bool | None = Field(
        default=None,
        description="`true` refuses a schema with a keyword that cannot be kept to; else such "
        "keywords are left aside.",
    )

    @field_validator("parameters")
    @classmethod
    def _an_object(cls, parameters: dict[str, Any] | None) -> dict[str, Any] | None:
        if parameters and parameters.get("type", "object") != "object":
            raise ValueError("must be the schema of an object: arguments are named")
        return parameters


class _OfFunction(RequestPart):
    type: Annotated[Literal["function"], says("must be function; nothing else is supported")]


class Tool(_OfFunction):
    """A function that the model may call."""

    function: Function


class FunctionTool(Function, _OfFunction):  # in this order the type is looked at first
    """A function that the model may call, as the Responses API writes it."""


class FunctionRef(RequestPart):
    """A function by its name."""

    name: FunctionName


class NamedTool(RequestPart):
    """The function that is to be called."""

    type: Literal["function"]
    function: FunctionRef


class FunctionChoice(FunctionRef):
    """The function that is to be called, as the Responses API writes it."""

    type: Literal["function"]


Tools = Annotated[list[Tool], Field(max_length=MAX_TOOLS, fail_fast=True)]
ToolChoice = Annotated[
    Literal["none", "auto", "required"] | NamedTool,
    says('must be none, auto, required or {"type": "function", "function": {"name": ...}}'),
]


FunctionTools = Annotated[list[FunctionTool], Field(max_length=MAX_TOOLS, fail_fast=True)]
AnyFunction = Annotated[
    Literal["none", "auto", "required"] | FunctionChoice,
    says('must be none, auto, required or {"type": "function", "name": ...}'),
]


class CalledFunction(RequestPart):
    """The function of a call, and its arguments as JSON."""

    name: FunctionName
    arguments: str


class ToolCall(RequestPart):
    """A call that an earlier answer made."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction
    index: Ignored = None


class MadeFunction(BaseModel):
    """The function that is called."""

    name: str
    arguments: str = Field(description="JSON by the schema, unless the answer was cut.")


class MadeCall(BaseModel):
    """A call."""

    id: str
    type: Literal["function"] = "function"
    function: MadeFunction


class FunctionDelta(BaseModel):
    """What a chunk adds to a call."""

    name: str | None = left_out()
    arguments: str = ""


class CallDelta(BaseModel):
    """What a chunk adds to call number `index`; the first has its id and name."""

    index: int
    id: str | None = left_out()
    type: Literal["function"] | None = left_out()
    function: FunctionDelta
