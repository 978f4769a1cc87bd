"""Metrics of the keys in hand, of their rotation by volume, and of the ledger."""

from functools import partial

from prometheus_client import CollectorRegistry, Gauge

from ttmark.shared.keys.held_keys import KeyState
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.rotation_by_volume import VolumeCounter
from ttmark.shared.observability.gauges import watch_gauge
from ttmark.shared.vault.ledger import Ledger


def watch_volume(volume: VolumeCounter, registry: CollectorRegistry) -> None:
    watch_gauge(
        registry,
        "ttmark_key_volume_share",
        "Tokens marked by all replicas with the primary version nearest to its limit, over that limit;"
        " 0 without limits.",
        lambda: volume.share,
    )
    watch_gauge(
        registry,
        "ttmark_key_volume_unreported_tokens",
        "Tokens marked here that the store does not know of yet; rises while it is away.",
        lambda: volume.unreported,
    )


def watch_ledger(ledger: Ledger, registry: CollectorRegistry) -> None:
    """Registers the gauge of what a cold start will not know."""
    watch_gauge(
        registry,
        "ttmark_ledger_unsaved_records",
        "Records of keys and tokens whose latest version is missing in the ledger, which cannot be written.",
        lambda: ledger.unsaved,
    )


def watch_keys(cache: KeyCache, registry: CollectorRegistry) -> None:
    """Registers the gauges; they are read from `cache` at each scrape. No label names a key or a tenant."""
    gauge = partial(watch_gauge, registry)
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


def _versions(cache: KeyCache, state: KeyState) -> float:
    return sum(version.state is state for key in cache.keys for version in key.versions)
