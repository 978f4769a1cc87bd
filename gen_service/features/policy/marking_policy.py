"""The operator's rules on which texts are marked; the first that fits a token and its request decides."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ttmark.gen_service.api.plan.stages import DEFAULT_RULE, Hook, ManifestDemand, MarkingChoice
from ttmark.shared.access.scopes import Principal, TokenUse
from ttmark.shared.http.service_errors import PolicyDenied
from ttmark.shared.schemas.generation.sampling import SamplingFields
from ttmark.shared.schemas.generation.watermark_block import WatermarkOptions
from ttmark.shared.vault.names import Name

BY_POLICY = "policy"
MOST_RULES = 32
# What is longer is no short text, whatever a policy calls it.
MOST_SHORT_TOKENS = 1_000

Action = Literal["mark", "leave_unmarked", "deny_unmarked"]
ShortTokens = Annotated[int, Field(ge=1, le=MOST_SHORT_TOKENS)]
_CLOSED = ConfigDict(frozen=True, extra="forbid", strict=True)


class Conditions(BaseModel):
    """What a rule is for: all conditions that are given have to hold.

    Nothing here is the request's word alone: `code` needs a token that an operator labelled so, and lengths
    are the most that the request can come to, because nobody knows a length before the text is written.
    """

    model_config = _CLOSED

    tenants: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    tokens: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        default=None, description="Ids of access tokens."
    )
    models: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    machine: Literal[True] | None = Field(default=None, description="The token has the use `machine`.")
    code: Literal[True] | None = Field(
        default=None,
        description="The token has the use `code`, and the request says `watermark.content: code`.",
    )
    total_tokens_below: ShortTokens | None = Field(
        default=None, description="Prompts and all completions of the request together have fewer tokens."
    )
    completion_tokens_below: ShortTokens | None = Field(
        default=None, description="All completions together have fewer tokens, whatever the prompts."
    )

    @model_validator(mode="after")
    def _no_value_is_missing(self) -> Self:
        # It would widen the rule without a word.
        if any(getattr(self, name) is None for name in self.model_fields_set):
            raise ValueError("a condition without a value")
        return self

    def hold(self, body: SamplingFields, caller: Principal, prompt_tokens: int, most_tokens: int) -> bool:
        """Whether all of them do; see `MarkingPolicy.apply`."""
        code = body.watermark is not None and body.watermark.content == "code"
        whole = prompt_tokens + most_tokens
        return (
            (self.tenants is None or caller.tenant in self.tenants)
            and (self.tokens is None or caller.token_id in self.tokens)
            and (self.models is None or body.model in self.models)
            and (self.machine is None or TokenUse.MACHINE in caller.uses)
            and (self.code is None or (code and TokenUse.CODE in caller.uses))
            and (self.total_tokens_below is None or whole < self.total_tokens_below)
            and (self.completion_tokens_below is None or most_tokens < self.completion_tokens_below)
        )


class Rule(BaseModel):
    """What becomes of the traffic that it is for."""

    model_config = _CLOSED

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    when: Conditions
    then: Action
    manifest: ManifestDemand | None = Field(
        default=None,
        description="Whether texts end in a signed manifest; left out: as TTMARK_C2PA_MANIFESTS says.",
    )

    @model_validator(mode="after")
    def _leaves_something_marked(self) -> Self:
        takes_away = self.then == "leave_unmarked" or self.manifest == "never"
        if takes_away and self.when == Conditions():
            raise ValueError("a rule that leaves texts unmarked or without manifests needs a condition")
        if "manifest" in self.model_fields_set and self.manifest is None:
            raise ValueError("`manifest` without a value")
        return self


class MarkingPolicy(BaseModel):
    """Rules in their order; what none is for is marked. Without rules all is."""

    model_config = _CLOSED

    version: Literal[1] = 1
    rules: Annotated[tuple[Rule, ...], Field(max_length=MOST_RULES)] = ()
    otherwise: Literal["mark", "deny_unmarked"] = "mark"

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = self.rule_names
        if len(set(names)) < len(names):
            raise ValueError(f"rules need different names, and none is called {DEFAULT_RULE!r}")
        return self

    @property
    def rule_names(self) -> Sequence[str]:
        """Of all that can decide."""
        return [*(rule.name for rule in self.rules), DEFAULT_RULE]

    @property
    def demands_manifests(self) -> bool:
        return any(rule.manifest == "always" for rule in self.rules)

    def apply(
        self,
        choice: MarkingChoice,
        body: SamplingFields,
        caller: Principal,
        prompt_tokens: int,
        most_tokens: int,
    ) -> MarkingChoice:
        """The choice as the policy leaves it, with the name of the deciding rule and its word on manifests.

        A request that asks for a mark gets one, whatever rule would leave its text unmarked.

        Raises:
            PolicyDenied: the text would carry no mark, and a rule wants such requests refused.
        """
        asked = body, caller, prompt_tokens, most_tokens
        rule = next((rule for rule in self.rules if rule.when.hold(*asked)), None)
        action: Action = rule.then if rule else self.otherwise
        name = rule.name if rule else DEFAULT_RULE
        choice = replace(choice, rule=name, manifest=rule.manifest if rule else None)
        if action == "deny_unmarked" and choice.marking is None:
            reason = choice.unmarked_reason or "no key"
            raise PolicyDenied(
                f"The text would carry no watermark ({reason}), which this service forbids (rule {name!r}).",
                rule=name,
                reason=reason,
            )
        options = body.watermark or WatermarkOptions()
        asks = options.enabled is True or options.key_id is not None or options.payload is not None
        if action == "leave_unmarked" and choice.marking is not None and not asks:
            return replace(choice, marking=None, unmarked_reason=BY_POLICY, pool=())
        return choice


class PolicyHook(Hook):
    """A policy in the way of every request."""

    def __init__(self, policy: MarkingPolicy) -> None:
        self.rules = policy.rule_names
        self._policy = policy

    def choose(
        self,
        choice: MarkingChoice,
        body: SamplingFields,
        caller: Principal,
        prompt_tokens: int,
        most_tokens: int,
    ) -> MarkingChoice:
        return self._policy.apply(choice, body, caller, prompt_tokens, most_tokens)
