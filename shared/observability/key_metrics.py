"""Prometheus metrics of the keys in hand and of the store that they come from."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Protocol

from prometheus_client import CollectorRegistry, Gauge

from shared.keys.records import KeyState
from shared.keys.unlocked import UnlockedKey


class KeyReadings(Protocol):
    """What is read of a key cache; `shared.keys.KeyCache` is one."""

    @property
    def keys(self) -> Collection[UnlockedKey]:
        """All keys in hand, of every tenant."""

    @property
    def age_seconds(self) -> float | None:
        """Time since they were last read."""

    @property
    def max_age_seconds(self) -> float:
        """Age at which they are no longer used."""

    @property
    def problems(self) -> Mapping[str, Exception]:
        """Records that were refused, by key id."""

    @property
    def last_error(self) -> Exception | None:
        """Why the last attempt to read the store failed; None when it did not."""


def watch_keys(cache: KeyReadings, registry: CollectorRegistry) -> None:
    """Registers the gauges; they are read from `cache` at each scrape. No label names a key or a tenant."""

    def gauge(name: str, text: str, read: Callable[[], float]) -> None:
        Gauge(name, text, registry=registry).set_function(read)

    gauge(
        "ttmark_key_cache_age_seconds",
        "Time since the keys were last read from the store; infinite before the first time.",
        lambda: float("inf") if cache.age_seconds is None else cache.age_seconds,
    )
    gauge(
        "ttmark_key_cache_max_age_seconds",
        "Age at which the keys in hand are no longer used.",
        lambda: cache.max_age_seconds,
    )
    gauge("ttmark_key_cache_keys", "Keys in hand.", lambda: len(cache.keys))
    gauge(
        "ttmark_key_cache_epochs",
        "Changes of all keys in hand; equal in all replicas that know the same.",
        lambda: sum(key.epoch for key in cache.keys),
    )
    gauge(
        "ttmark_key_records_refused",
        "Records that are damaged, altered or rolled back and were not taken.",
        lambda: len(cache.problems),
    )
    gauge(
        "ttmark_key_store_reachable",
        "1 if the last attempt to read the store succeeded.",
        lambda: float(cache.last_error is None and cache.age_seconds is not None),
    )
    versions = Gauge(
        "ttmark_key_versions", "Versions of the keys in hand by state.", ["state"], registry=registry
    )
    for state in KeyState:
        versions.labels(state.value).set_function(partial(_versions, cache, state))


def _versions(cache: KeyReadings, state: KeyState) -> float:
    return sum(version.state is state for key in cache.keys for version in key.versions)
