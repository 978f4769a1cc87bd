"""Rules on which texts are marked: the table of docs/generation.md, asked row by row, and attempts at it."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.contract.openai.composed import BODIES, Service, build_service
from tests.contract.openai.fake_generator import FakeGenerator
from tests.harness.imports import ROOT
from ttmark.gen_service.features.policy.marking_policy import MarkingPolicy, PolicyHook

DOCUMENT = ROOT / "docs" / "generation.md"
ACTIONS = ("mark", "leave_unmarked", "deny_unmarked")
# The same generator under three names, so that one service has a rule for each action.
MODELS = dict(zip(ACTIONS, ("tiny", "own-template", "untold"), strict=True))
ASKING: dict[str, dict[str, Any]] = {
    "says nothing": {},
    "says nothing, and there is no usable key": {},
    "watermark.enabled: true": {"watermark": {"enabled": True}},
    "watermark.enabled: false": {"watermark": {"enabled": False}},
    "watermark.key_id": {"watermark": {"key_id": "acme-spare"}},
    "temperature: 0": {"temperature": 0},
}
TOKENS = {"generate": "author", "and generate:unwatermarked": "operator"}


def policy(*rules: dict[str, Any], otherwise: str = "mark") -> MarkingPolicy:
    named = [{"name": f"rule-{number}", **rule} for number, rule in enumerate(rules)]
    return MarkingPolicy.model_validate_json(json.dumps({"rules": named, "otherwise": otherwise}))


def table() -> Iterator[tuple[str, str, str, str]]:
    """Request, token, action and outcome of every cell."""
    text = DOCUMENT.read_text().split("<!-- policy -->")[1].split("<!-- end of policy -->")[0]
    for row in text.strip().splitlines()[2:]:
        request, token, *outcomes = [cell.strip().replace("`", "") for cell in row.strip("|").split("|")]
        yield from ((request, token, *cell) for cell in zip(ACTIONS, outcomes, strict=True))


Serve = Callable[[Service], Service]


@pytest.fixture(scope="module")
def acting(serve: Serve) -> Service:
    rules = [{"when": {"models": [model]}, "then": action} for action, model in MODELS.items()]
    return serve(build_service(FakeGenerator(), hooks=[PolicyHook(policy(*rules))]))


@pytest.fixture(scope="module")
def ruled(serve: Serve) -> Service:
    """As in the documentation, but for the first rule."""
    return serve(
        build_service(
            FakeGenerator(),
            hooks=[
                PolicyHook(
                    policy(
                        {"name": "machines", "when": {"machine": True}, "then": "leave_unmarked"},
                        {"name": "code", "when": {"code": True}, "then": "leave_unmarked"},
                        {"name": "short", "when": {"total_tokens_below": 60}, "then": "leave_unmarked"},
                        otherwise="deny_unmarked",
                    )
                )
            ],
        )
    )


def post(service: Service, token: str = "author", **change: Any) -> Any:
    return service.post("completions", token, **change)


def test_the_table_is_whole() -> None:
    cells = list(table())
    assert len(cells) == 24
    assert {request for request, *_ in cells} == set(ASKING)


@pytest.mark.parametrize(("request_", "token", "action", "outcome"), list(table()))
def test_the_table_of_the_documentation_holds(acting, request_, token, action, outcome):
    acting.keys.ready = "no usable key" not in request_
    response = post(acting, TOKENS[token], model=MODELS[action], **ASKING[request_])
    if outcome.isdigit():
        assert response.status_code == int(outcome)
        assert acting.generator.requests == []
        return
    assert response.status_code == 200, response.text
    block = response.json()["watermark"]
    if outcome == "marked":
        assert block["watermarked_blocks"] > 0
        assert block["key_id"]
    else:
        assert block["status"] == "unwatermarked"
        assert list(block["reasons"]) == [outcome.removeprefix("unmarked: ")]
        assert block["key_id"] is None
    assert block["policy"] == f"rule-{ACTIONS.index(action)}"


@pytest.mark.parametrize("route", BODIES)
@pytest.mark.parametrize("stream", [False, True])
def test_a_rule_counts_on_every_route(acting: Service, route: str, stream: bool) -> None:
    for model in ("own-template", "untold") if route == "completions" else ("tiny",):
        answer = acting.post(route, model=model, stream=stream)
        assert answer.status_code == 200, answer.text
        assert '"policy":"rule-' in answer.text.replace(" ", "")


def rule_of(service: Service, token: str, **change: Any) -> tuple[str | None, bool]:
    """The rule that decided, and whether the text is marked."""
    block = post(service, token, **change).json()["watermark"]
    return block.get("policy"), block["watermarked_blocks"] > 0


def test_tokens_and_requests_are_told_apart(ruled: Service) -> None:
    code = {"watermark": {"content": "code"}, "max_tokens": 99}
    assert rule_of(ruled, "machine", max_tokens=99) == ("machines", False)
    assert rule_of(ruled, "editor", **code) == ("code", False)
    assert rule_of(ruled, "editor", max_tokens=99) == (None, True)
    assert rule_of(ruled, "author", max_tokens=40) == ("short", False)


def test_who_only_claims_to_write_code_is_marked(ruled: Service) -> None:
    assert rule_of(ruled, "author", watermark={"content": "code"}, max_tokens=99) == (None, True)
    assert rule_of(ruled, "machine", watermark={"content": "code", "enabled": True}) == ("machines", True)


def test_a_long_text_is_not_assembled_by_continuing_short_ones(ruled: Service) -> None:
    text, unmarked = "Once", 0
    for _ in range(30):
        answer = post(ruled, prompt=text, max_tokens=8).json()
        unmarked += 0 if answer["watermark"]["watermarked_blocks"] else 8
        text += answer["choices"][0]["text"]
    assert 0 < unmarked < 60
    assert ruled.tokens(text) > 200


def test_choices_and_prompts_of_a_request_count_together(ruled: Service) -> None:
    assert rule_of(ruled, "author", max_tokens=20, n=2) == ("short", False)
    assert rule_of(ruled, "author", max_tokens=20, n=4) == (None, True)
    assert rule_of(ruled, "author", max_tokens=20, prompt=["Once"] * 4) == (None, True)


def test_a_denial_says_which_rule_and_is_audited_and_counted(ruled: Service) -> None:
    def denied() -> float:
        labels = {"rule": "default", "decision": "denied"}
        return ruled.registry.get_sample_value("ttmark_gen_policy_decisions_total", labels) or 0

    before = denied()
    error = post(ruled, temperature=0, max_tokens=99).json()["error"]
    assert (error["code"], "'default'" in error["message"]) == ("policy_denied", True)
    (event,) = ruled.audit
    told = {name: event.said[name] for name in ("token_id", "reason", "route", "rule")}
    assert event.action == "policy.deny"
    assert list(told.values()) == ["tok-author", "greedy", "/v1/completions", "default"]
    assert denied() == before + 1


def test_the_reason_is_audited_and_counted(ruled: Service) -> None:
    post(ruled, max_tokens=4)
    used, _ = ruled.audit
    assert (used.action, used.said["reason"], used.said["rule"]) == ("key.generate", "policy", "short")
    assert "key_id" not in used.said
    labels = {"rule": "short", "decision": "unmarked"}
    assert ruled.registry.get_sample_value("ttmark_gen_policy_decisions_total", labels)
    assert ruled.registry.get_sample_value("ttmark_gen_blocks_total", {"outcome": "policy"})


def test_a_rule_that_cannot_be_evaluated_lets_nothing_out(ruled, monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(MarkingPolicy, "apply", broken)
    assert post(ruled).status_code == 500
    assert ruled.generator.requests == []


def test_an_engine_leaves_a_text_unmarked_by_policy(serve: Serve, engine: Any) -> None:
    rules = policy({"when": {"tenants": ["acme"]}, "then": "leave_unmarked"})
    block = post(serve(build_service(engine, hooks=[PolicyHook(rules)])), seed=1, ignore_eos=True).json()[
        "watermark"
    ]
    assert (block["status"], block["reasons"], block["blocks"]) == ("unwatermarked", {"policy": 8}, 8)
    assert block["policy"] == "rule-0"
