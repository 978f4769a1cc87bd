"""`TTMARK_POLICY_FILE`: what is not understood ends the start with one clear line."""

import json
import re
from pathlib import Path
from textwrap import dedent

import pytest

from tests.harness.imports import ROOT
from ttmark.gen_service.features.policy.marking_policy import MarkingPolicy
from ttmark.gen_service.features.policy.settings import PolicySettings
from ttmark.services.startup import StartupError

DOCUMENT = ROOT / "docs" / "generation.md"
RULE = "rules: [{name: a, when: {machine: true}, then: leave_unmarked}]"


def load(tmp_path: Path, text: str) -> MarkingPolicy:
    (tmp_path / "policy.yaml").write_text(text)
    return PolicySettings(policy_file=tmp_path / "policy.yaml").load_policy()


def test_without_a_file_everything_is_marked() -> None:
    assert PolicySettings(policy_file=None).load_policy() == MarkingPolicy()
    assert (MarkingPolicy().rules, MarkingPolicy().otherwise) == ((), "mark")


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    as_json = {"rules": [{"name": "a", "when": {"machine": True}, "then": "leave_unmarked"}]}
    assert load(tmp_path, RULE) == load(tmp_path, json.dumps(as_json))


def test_the_examples_of_the_documentation_are_policies(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(version: 1\n.*?)```", DOCUMENT.read_text(), re.S)
    assert load(tmp_path, example).rule_names == ["contracts", "machines", "code", "short", "default"]
    law = DOCUMENT.with_name("compliance.md").read_text()
    (strict,) = re.findall(r"   ```yaml\n(.*?)   ```", law, re.S)
    assert load(tmp_path, dedent(strict)) == MarkingPolicy(otherwise="deny_unmarked")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the policy"),
        ("[]", "the policy"),
        ("rules: [", "cannot be read"),
        ("rule: []", "rule: "),
        ("version: 2", "version"),
        ("version: '1'", "version"),
        ("otherwise: leave_unmarked", "otherwise"),
        (RULE.replace("then: leave_unmarked", "then: mark, manifest: true"), "rules.0.manifest"),
        (RULE.replace("then: leave_unmarked", "then: mark, manifest: "), "`manifest` without a value"),
        ("rules: [{name: a, when: {}, then: mark, manifest: never}]", "needs a condition"),
        (RULE.replace("leave_unmarked", "never"), "rules.0.then"),
        (RULE.replace("machine", "machines"), "rules.0.when.machines"),
        (RULE.replace("true", "false"), "rules.0.when.machine"),
        (RULE.replace("machine: true", ""), "needs a condition"),
        (RULE.replace("machine: true", "tenants: []"), "rules.0.when.tenants"),
        (RULE.replace("machine: true", "tenants: acme"), "rules.0.when.tenants"),
        (RULE.replace("machine: true", "total_tokens_below: 0"), "total_tokens_below"),
        (RULE.replace("machine: true", "total_tokens_below: 1001"), "total_tokens_below"),
        (RULE.replace("machine: true", "total_tokens_below: 60.0"), "total_tokens_below"),
        (RULE.replace("machine: true", "total_tokens_below: .nan"), "without a value"),
        (RULE.replace("machine: true", "machine: true, total_tokens_below: "), "without a value"),
        (RULE.replace("name: a", "name: default"), "different names"),
        (RULE.replace("name: a", "name: 'a\"b'"), "rules.0.name"),
        (RULE.replace("}]", "}, {name: a, when: {code: true}, then: mark}]"), "different names"),
        (f"{RULE}\nrules: []", "'rules' stands twice"),
        (f"rules: {json.dumps([{'name': f'r{n}', 'when': {}, 'then': 'mark'} for n in range(33)])}", "rules"),
        ("!!python/object/apply:os.system ['true']", "cannot be read"),
        ("1: 2", "key must be str"),
        ("[" * 5_000, "cannot be read"),
        ("a: &a [*a]", "Recursion limit"),
    ],
)
def test_what_is_not_a_policy_ends_the_start(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StartupError, match=re.escape(message)) as refused:
        load(tmp_path, text)
    assert "policy.yaml" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="TTMARK_POLICY_FILE: there is no such file"):
        PolicySettings(policy_file=tmp_path / "nowhere.yaml").load_policy()
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StartupError, match="cannot be read"):
        PolicySettings(policy_file=tmp_path / "binary.yaml").load_policy()
