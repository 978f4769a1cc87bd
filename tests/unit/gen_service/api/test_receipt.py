"""The words of a receipt, and who hears them."""

import math

import pytest

from ttmark.gen_service.api.plan.watermark_report import ReceiptRule
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.schemas.generation.watermark_block import Receipt

AUTHOR = Principal("a", "acme", frozenset({Scope.GENERATE}))
AUDITOR = Principal("b", "acme", frozenset({Scope.GENERATE, Scope.DETECT_EVIDENCE}))


@pytest.mark.parametrize("fpr", [1e-5, 1e-2, 3e-7])
def test_a_word_says_on_which_side_of_the_rate_and_of_a_thousandth_of_it_p_is(fpr: float) -> None:
    rule, rate = ReceiptRule(fpr), math.log10(fpr)
    assert rule.word(rate + 1e-9) == "none"
    assert rule.word(rate) == "weak"
    assert rule.word(rate - 3 + 1e-9) == "weak"
    assert rule.word(rate - 3) == "strong"
    assert rule.word(None) == "none"


@pytest.mark.parametrize(
    ("rule", "dictated"), [(ReceiptRule(), True), (ReceiptRule(audience="evidence"), False)]
)
def test_a_word_is_withheld_from_others_alone(rule: ReceiptRule, dictated: bool) -> None:
    assert rule.receipts([-6.0, -7.0], AUTHOR, dictated=dictated) == (Receipt(), None)
    heard, _ = rule.receipts([-6.0, -7.0], AUDITOR, dictated=dictated)
    assert (heard.detectability, heard.log10_p) == ("weak", -6.0)
