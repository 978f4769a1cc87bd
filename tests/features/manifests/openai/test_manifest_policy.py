"""Manifests by the rules of the marking policy: the table of docs/generation.md, asked row by row."""

import json
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from tests.contract.openai.composed import build_service
from tests.contract.openai.fake_generator import FakeGenerator
from tests.harness.certificates import credential
from tests.harness.imports import ROOT
from ttmark.gen_service.features.manifests.provenance import Manifests
from ttmark.gen_service.features.policy.marking_policy import MarkingPolicy, PolicyHook
from ttmark.shared.manifests.signer import ManifestSigner
from ttmark.shared.manifests.wrapper import wrappers

DOCUMENT = ROOT / "docs" / "generation.md"
TOKENS = {"nothing": "author", "always": "operator", "never": "messenger"}
ASKING: dict[str, dict[str, Any]] = {
    "says nothing": {},
    "watermark.manifest: true": {"watermark": {"manifest": True}},
    "watermark.manifest: false": {"watermark": {"manifest": False}},
    "response_format": {"response_format": {"type": "json_object"}},
    "response_format and watermark.manifest: true": {
        "response_format": {"type": "json_object"},
        "watermark": {"manifest": True},
    },
}
RULES = [
    {
        "name": f"rule-{demand}",
        "when": {"tokens": [f"tok-{TOKENS[demand]}"]},
        "then": "mark",
        "manifest": demand,
    }
    for demand in ("always", "never")
]


def table() -> Iterator[tuple[str, str, bool, str]]:
    """Request, what the rule says, whether the setting is `always`, and the outcome."""
    text = DOCUMENT.read_text().split("<!-- manifests by policy -->")[1].split("<!-- end")[0]
    for row in text.strip().splitlines()[2:]:
        request, on_request, always, *by_rule = [
            cell.strip().replace("`", "") for cell in row.strip("|").split("|")
        ]
        yield request, "nothing", False, on_request
        yield request, "nothing", True, always
        for (demand, outcome), setting in product(
            zip(("always", "never"), by_rule, strict=True), (False, True)
        ):
            yield request, demand, setting, outcome


@pytest.fixture(scope="module")
def services(serve: Callable[..., Any]) -> dict[bool, Any]:
    """With the same rules, by whether the setting wants manifests in all texts."""
    ours = credential()
    signer = ManifestSigner(ours.chain, ours.key)
    policy = MarkingPolicy.model_validate_json(json.dumps({"rules": RULES}))
    return {
        always: serve(build_service(FakeGenerator(), hooks=[Manifests(signer, always), PolicyHook(policy)]))
        for always in (False, True)
    }


def test_the_table_is_whole() -> None:
    cells = list(table())
    assert len(cells) == 30
    assert {request for request, *_ in cells} == set(ASKING)


@pytest.mark.parametrize(("request_", "demand", "always", "outcome"), list(table()))
def test_the_table_of_the_documentation_holds(services, request_, demand, always, outcome):
    service = services[always]
    response = service.post("chat/completions", TOKENS[demand], tokens=30, **ASKING[request_])
    if outcome.isdigit():
        assert response.status_code == int(outcome)
        assert response.json()["error"]["param"] == "watermark.manifest"
        assert service.generator.requests == []
        return
    assert response.status_code == 200, response.text
    answer = response.json()
    text = answer["choices"][0]["message"]["content"]
    assert bool(wrappers(text)) == (outcome == "embedded")
    assert answer["watermark"].get("manifest", "none") == outcome
    assert answer["watermark"].get("policy") == (None if demand == "nothing" else f"rule-{demand}")
