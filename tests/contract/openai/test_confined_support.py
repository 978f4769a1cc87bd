"""Who chooses the tokens learns nothing about the key from them: those blocks carry no mark, and say so."""

from typing import Any

import pytest

from tests.contract.openai.composed import BODIES

CHOSEN = {str(token): 100.0 for token in range(29)}
ASKED: dict[str, Any] = {"seed": 1, "ignore_eos": True, "tokens": 24, "top_k": 20}


@pytest.mark.parametrize("route", BODIES)
def test_the_rule_holds_on_every_route(real: Any, route: str) -> None:
    block = real.block(route, logit_bias=CHOSEN, **ASKED)
    assert block["reasons"]["confined"] > 0
    assert block["watermarked_blocks"] == 0
    assert block["status"] == "unwatermarked"
    assert block["key_id"] == "acme-main"


@pytest.mark.parametrize("biases", [{}, {"7": -100.0}, {str(token): -100.0 for token in range(64)}])
def test_a_few_banned_tokens_leave_the_watermark_on(real: Any, biases: dict[str, float]) -> None:
    block = real.block("completions", logit_bias=biases, **ASKED)
    assert block["watermarked_blocks"] > 0
    assert "confined" not in block["reasons"]


def test_a_text_that_carries_no_watermark_anyway_says_its_own_reason(real: Any) -> None:
    block = real.block("completions", logit_bias=CHOSEN, temperature=0, **ASKED)
    assert block["reasons"].keys() == {"greedy"}
