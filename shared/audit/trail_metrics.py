"""Prometheus metrics of the audit trail."""

from prometheus_client import CollectorRegistry, Gauge

from ttmark.shared.audit.trail import AuditTrail


def watch_trail(trail: AuditTrail | None, registry: CollectorRegistry) -> None:
    """Registers the gauges, read at each scrape; 0 where there is no trail."""
    Gauge(
        "ttmark_audit_unanchored_records",
        "Records of the audit trail that the key store does not know of yet; rises while it is away.",
        registry=registry,
    ).set_function(lambda: float(trail.unanchored if trail else 0))
    Gauge(
        "ttmark_audit_lost_events",
        "Events since the start that could not be written to the audit trail.",
        registry=registry,
    ).set_function(lambda: float(trail.lost if trail else 0))
