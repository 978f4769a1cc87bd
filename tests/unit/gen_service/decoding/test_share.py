"""Which blocks are marked under a caller's restrictions: those that the model has its part in."""

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from tests.unit.gen_service.decoding import written
from tests.unit.gen_service.decoding.written import TOKENIZER
from ttmark.gen_service.decoding import tandem_block
from ttmark.gen_service.decoding.filters import FilterParams, filter_rows
from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.decoding.sequence import Sequence
from ttmark.gen_service.decoding.tandem_block import LEAST_SHARE, least_share
from ttmark.shared.watermark.schemes.watermark import Watermark

VOCAB = 300
CHOSEN = (70, 80, 90, 100)  # letters that the caller wants
BIAS = dict.fromkeys(range(2, 9), 5.0)
TEXTS = 2000
RESTRICTIONS: dict[str, dict[str, Any]] = {
    "bias": {"logit_bias": dict.fromkeys(CHOSEN, 100.0)},
    "ban": {"logit_bias": {token: -100.0 for token in range(VOCAB) if token not in CHOSEN}},
    "small biases, hot": {"logit_bias": dict.fromkeys(CHOSEN, 4.9), "top_k": 4, "temperature": 2.0},
}


def row_after(tokens: list[int], peak: float) -> torch.Tensor:
    """Logits [VOCAB] that follow from the last token alone; above 0, so that penalties divide them."""
    rng = np.random.default_rng(tokens[-1])
    return torch.from_numpy(peak * rng.random(VOCAB)).float()


def sequence(
    key: int | None,
    seed: int,
    *,
    grammar: Any = None,
    prompt: Any = (1,),
    scheme: str = "gumbel",
    length: int = 24,
    **sampling: Any,
) -> Sequence:
    mark = None if key is None else Marking("k", 1, "p", Watermark(scheme, 2, 1), bytes([key] * 16))
    params = SamplingParams(length, seed=seed, ignore_eos=grammar is None, **sampling)
    return Sequence(GenerationRequest("id", tuple(prompt), params, mark, grammar=grammar), TOKENIZER, (0,))


def completed(of: Sequence, peak: float = 8.0) -> list[int]:
    return written.completed(of, lambda tokens: row_after(tokens, peak)).completion


@pytest.fixture(params=RESTRICTIONS)
def restriction(request: pytest.FixtureRequest) -> dict[str, Any]:
    return RESTRICTIONS[request.param]


def test_a_text_of_the_callers_choice_is_the_same_under_every_key(restriction: dict[str, Any]) -> None:
    """So that it tells nothing of a key, and has no evidence of one."""
    made = [sequence(key, 5, **restriction) for key in range(4)]
    assert len({tuple(completed(each)) for each in made}) == 1
    assert all(each.report().reasons["confined"] > 0 for each in made)


def test_a_text_of_the_models_choice_is_another_under_another_key() -> None:
    for change in ({}, {"logit_bias": {7: 1.0, 8: -100.0}}, {"repetition_penalty": 1.1}):
        made = [sequence(key, 5, top_k=8, **change) for key in range(4)]
        assert len({tuple(completed(each)) for each in made}) == 4
        assert all("confined" not in each.report().reasons for each in made)


@pytest.mark.parametrize("params", [{}, {"top_k": 6}, {"top_p": 0.7, "temperature": 1.7}, {"min_p": 0.2}])
def test_the_share_is_the_least_over_branches_of_what_the_model_gives_to_what_is_left(
    params: dict[str, Any],
) -> None:
    random = torch.Generator().manual_seed(3)
    own = torch.randn((5, 40), generator=random)
    changed = own + torch.randn((5, 40), generator=random)
    changed[:, ::3] = -torch.inf
    changed[4, 1:] = -torch.inf  # nothing is chosen here
    changed[4, 0] = 0.0
    left = filter_rows(changed, [FilterParams(**params)] * 5)
    expected = []
    for number, support in enumerate(left[:4]):
        assert support is not None
        p, q = (rows[number].double().softmax(0) for rows in (own, changed))
        ids = support.ids.tolist()
        expected.append(sum(min(p[i], q[i]) for i in ids) / sum(q[i] for i in ids))
    assert least_share(own, changed, left) == pytest.approx(float(min(expected)), rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["gumbel", pytest.param("synthid", marks=pytest.mark.slow)])
def test_over_random_keys_blocks_follow_the_restricted_model_marked_or_not(scheme: str) -> None:
    """Chi-square at the 0.001 level over 2,000 keys; some tokens lead to unmarked blocks."""
    after = {last: _restricted(last) for last in range(1, 9)}
    shares = [share for _, share in after.values()]
    assert min(shares) < LEAST_SHARE < max(shares)
    drawn: Counter[tuple[int, ...]] = Counter()
    unmarked = 0
    params = SamplingParams(4, ignore_eos=True, logit_bias=BIAS)
    rows = {last: _small_row(last) for last in after}
    for made in written.under_keys(TEXTS, Watermark(scheme, 2, 1), rows, params):
        drawn[tuple(made.completion[1:])] += 1
        unmarked += made.report().reasons.get("confined", 0)
    assert TEXTS / 8 < unmarked < TEXTS * 7 / 8
    first = sum(float(after[1][0][token]) * after[token][0] for token in range(1, 9))  # of the second token
    expected = {
        (a, b, c): float(first[a] * after[a][0][b] * after[b][0][c])
        for a, b, c in product(range(1, 9), repeat=3)
    }
    assert written.follow(drawn, expected, TEXTS)


def _small_row(last: int) -> torch.Tensor:
    """Of eight tokens; after some of them all but the first token are unlikely."""
    row = torch.full((9,), -torch.inf)
    row[1:] = torch.from_numpy(np.random.default_rng(last).standard_normal(8)).float()
    row[2:] -= 5.0 if last <= 3 else 0.0
    return row


def _restricted(last: int) -> tuple[torch.Tensor, float]:
    """The distribution under the bias, and the share of the model's own choice in it."""
    own, changed = _small_row(last), _small_row(last)
    changed[list(BIAS)] += torch.tensor(list(BIAS.values()))
    left = [support for support in filter_rows(changed[None], [FilterParams()]) if support is not None]
    return changed.double().softmax(0), least_share(own[None], changed[None], left)


def test_the_rule_is_what_keeps_the_key_out(restriction, monkeypatch) -> None:
    monkeypatch.setattr(tandem_block, "LEAST_SHARE", 0.0)
    made = [tuple(completed(sequence(key, 5, **restriction))) for key in range(4)]
    assert len(set(made)) > 1
