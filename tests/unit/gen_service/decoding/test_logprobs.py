"""Log probabilities of the model's own distribution."""

import math

import pytest
import torch

from ttmark.gen_service.decoding.logprobs import token_logprob


def test_logprobs_are_those_of_a_softmax_at_temperature_one_and_at_most_one_for_each_token() -> None:
    row = torch.log(torch.tensor([0.1, 0.6, 0.3]))
    logprob, top = token_logprob(row, 0, 2)
    assert logprob == pytest.approx(math.log(0.1), abs=1e-6)
    assert [token for token, _ in top] == [1, 2]
    assert [value for _, value in top] == pytest.approx([math.log(0.6), math.log(0.3)], abs=1e-6)
    assert len(token_logprob(torch.zeros(3), 0, 20)[1]) == 3
