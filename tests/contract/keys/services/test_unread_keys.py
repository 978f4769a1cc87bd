"""At start a service names the keys whose texts no tokenizer of its folders reads."""

import json
import time
from pathlib import Path

import pytest

from tests.contract.keys.services.conftest import KEK, MODEL, Cluster
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile


@pytest.mark.parametrize("name", ["gen-3", "detect-3"])
def test_keys_for_another_tokenizer_are_named_with_the_nearest_folder(
    cluster: Cluster, fingerprint: str, name: str
) -> None:
    other = Profile.model_validate({"scheme": "gumbel", "tokenizer_fingerprint": "ab" * 32})
    names = [f"{MODEL}-{name}-{end}-{time.time_ns()}" for end in "ba"]  # a second run needs others
    for key_id in names:
        cluster.operator.on_store(
            lambda store, key_id=key_id: KeyRing(store, KEK).create(key_id, tenant="acme", profile=other)
        )
    before = len(cluster.log.getvalue())
    cluster.start(name)
    events = [json.loads(line) for line in cluster.log.getvalue()[before:].splitlines()]
    (said,) = [event for event in events if event["event"] == "no_tokenizer_of_keys"]
    assert said["level"] == "warning"
    assert set(names) <= set(said["keys"])
    assert said["tokenizer_fingerprint"] == "abababababab"
    assert Path(said["nearest_by_name"]).name == MODEL
    assert said["nearest_fingerprint"] == fingerprint[:12]
