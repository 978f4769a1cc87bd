"""Metrics of keys, readiness and detection."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from ttmark.detect_service.api.metrics import DetectionMetrics
from ttmark.shared.keys.held_keys import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.keys.key_metrics import watch_keys
from ttmark.shared.observability.memory import process_memory, watch_memory
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError, StoreUnavailable


@dataclass
class Keys:
    """A cache whose readings a test sets."""

    keys: list[UnlockedKey] = field(default_factory=list)
    age_seconds: float | None = None
    max_age_seconds: float = 900.0
    problems: dict[str, KeyStoreError] = field(default_factory=dict)
    last_error: KeyStoreError | None = None


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def key(epoch: int, *states: KeyState) -> UnlockedKey:
    profile = Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": "0" * 64})
    versions = tuple(UnlockedVersion(n, state, bytes(16)) for n, state in enumerate(states, 1))
    return UnlockedKey("main", "acme", profile, epoch, versions)


def test_before_the_first_reading_keys_are_infinitely_old(registry: CollectorRegistry) -> None:
    watch_keys(Keys(), registry)
    assert registry.get_sample_value("ttmark_key_cache_age_seconds") == float("inf")
    assert registry.get_sample_value("ttmark_key_store_reachable") == 0
    assert registry.get_sample_value("ttmark_key_versions", {"state": "primary"}) == 0


def test_keys_are_read_at_each_scrape(registry: CollectorRegistry) -> None:
    cache = Keys(age_seconds=1.0)
    watch_keys(cache, registry)
    cache.keys = [key(3, KeyState.ACTIVE, KeyState.PRIMARY), key(4, KeyState.PRIMARY)]
    cache.problems = {"other": KeyStoreError("altered")}
    assert registry.get_sample_value("ttmark_key_cache_keys") == 2
    assert registry.get_sample_value("ttmark_key_cache_epochs") == 7
    assert registry.get_sample_value("ttmark_key_versions", {"state": "primary"}) == 2
    assert registry.get_sample_value("ttmark_key_versions", {"state": "active"}) == 1
    assert registry.get_sample_value("ttmark_key_records_refused") == 1
    assert registry.get_sample_value("ttmark_key_store_reachable") == 1
    cache.last_error = StoreUnavailable("away")
    assert registry.get_sample_value("ttmark_key_store_reachable") == 0


def test_only_what_was_not_detected_counts_for_the_null(registry: CollectorRegistry) -> None:
    metrics = DetectionMetrics(registry)
    metrics.document("direct", "watermarked", 200, 2, -9.0)
    metrics.document("direct", "too_short", 3, 2, -0.1)
    metrics.document("direct", "not_detected", 200, 2, None)
    metrics.document("direct", "not_detected", 200, 2, -0.1)

    def bucket(bound: str) -> float | None:
        labels = {"mode": "direct", "le": bound}
        return registry.get_sample_value("ttmark_detect_not_detected_p_value_bucket", labels)

    assert [bucket("0.75"), bucket("0.8"), bucket("+Inf")] == [0, 1, 1]
    labels = {"mode": "direct", "verdict": "not_detected"}
    assert registry.get_sample_value("ttmark_detect_documents_total", labels) == 2
    assert registry.get_sample_value("ttmark_detect_hypotheses_total", {"mode": "direct"}) == 8


def test_known_labels_are_there_before_the_first_event(registry: CollectorRegistry) -> None:
    DetectionMetrics(registry)
    labels = {"mode": "localized", "verdict": "watermarked"}
    assert registry.get_sample_value("ttmark_detect_documents_total", labels) == 0


def test_memory_is_what_the_system_says_and_the_peak_is_a_metric(
    registry: CollectorRegistry, tmp_path: Path
) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nGroups:\t\nVmHWM:\t    3072 kB\nVmRSS:\t    2048 kB\n")
    assert process_memory(status) == {"resident": 2 << 20, "peak": 3 << 20}
    assert process_memory(tmp_path / "none") == {}
    watch_memory(registry)
    before = process_memory()
    shown = registry.get_sample_value("process_resident_memory_peak_bytes")
    assert 0 < before["resident"] <= before["peak"] <= shown <= process_memory()["peak"]
