"""Where the caller chose the tokens by `logit_bias`, the text carries no watermark."""

from collections.abc import Mapping
from dataclasses import replace

from ttmark.gen_service.api.marking_choice import MarkingChoice
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.service_errors import Forbidden

CONFINED = "confined"
# What they leave to a caller: docs/adr/0028.
MOST_BIAS = 5.0
LEAST_FREE_BIAS = -1.0
MOST_HELD_DOWN = 64
# A prompt may hold thousands of tokens, all of which a repetition penalty holds down: docs/adr/0087.
_LESS_PER_PENALTY = 15.0


def most_bias(repetition_penalty: float) -> float:
    """The largest bias that leaves the tokens to the model."""
    return max(0.0, MOST_BIAS - _LESS_PER_PENALTY * (repetition_penalty - 1.0))


def confines(biases: Mapping[str, float], repetition_penalty: float) -> bool:
    """Whether biases let their sender choose what a completion consists of."""
    held_down = sum(bias < LEAST_FREE_BIAS for bias in biases.values())
    return held_down > MOST_HELD_DOWN or max(biases.values()) > most_bias(repetition_penalty)


def without_confined_marks(
    choice: MarkingChoice,
    biases: Mapping[str, float] | None,
    repetition_penalty: float,
    caller: Principal,
) -> MarkingChoice:
    """The marking of a request with these biases: none where they confine it, which takes a scope.

    A watermark on tokens of the caller's choice would tell, block by block, what the key prefers.

    Raises:
        Forbidden: the text would be marked, and the caller may not choose its tokens.
    """
    if choice.marking is None or not biases or not confines(biases, repetition_penalty):
        return choice
    if Scope.GENERATE_BIAS not in caller.scopes:
        most = f"{most_bias(repetition_penalty):g}"
        if repetition_penalty > 1.0:
            most += f" beside a repetition_penalty of {repetition_penalty:g}"
        raise Forbidden(
            f"logit_bias: above {most}, or below {LEAST_FREE_BIAS:g} for more than {MOST_HELD_DOWN} "
            f"tokens, it takes the scope {Scope.GENERATE_BIAS.value!r}, or temperature 0.",
            param="logit_bias",
            headers={
                "WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{Scope.GENERATE_BIAS.value}"'
            },
        )
    return replace(choice, marking=None, unmarked_reason=CONFINED)
