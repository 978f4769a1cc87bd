"""Which sampling a text is made with: what the request names."""

from typing import Any

import pytest

ROUTES: dict[str, dict[str, Any]] = {
    "/v1/completions": {"prompt": "Once upon", "max_tokens": 12},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 12},
    "/v1/responses": {"input": "Hi", "max_output_tokens": 12},
}


@pytest.mark.parametrize("path", ROUTES)
def test_a_repetition_penalty_is_taken_on_every_route(fake: Any, path: str) -> None:
    body = {"model": "tiny", "repetition_penalty": 1.5} | ROUTES[path]
    assert fake.http().post(path, json=body).status_code == 200
    assert fake.generator.requests[-1].sampling.repetition_penalty == 1.5


def test_a_repetition_penalty_keeps_greedy_text_from_going_round(real: Any) -> None:
    body = {"model": "tiny", "temperature": 0, "ignore_eos": True, "return_token_ids": True}
    body |= ROUTES["/v1/completions"] | {"max_tokens": 60}

    def different(**more: Any) -> int:
        answer = real.http().post("/v1/completions", json=body | more).json()
        return len(set(answer["choices"][0]["token_ids"]))

    assert different(repetition_penalty=2) > different() + 10
