"""What each setting is about: the order in which a reader meets them."""

import re

TOPICS: tuple[tuple[str, str], ...] = (
    (
        "Addresses and ports",
        r"host|(gen|detect|canary)_port|cors_origins|console_url|playground|trusted_proxies",
    ),
    ("Model and tokenizers", r"model|tokenizers|engine|engine_file|dtype|threads|state"),
    (
        "Key store and secrets",
        r"store_url.*|kek.*|default_key|key_.*|token_refresh_seconds|ledger_file|replica_id",
    ),
    (
        "What is marked and said",
        r"policy_file|opening_bits|detectability_.*|generation_defaults|control_tokens|unknown_fields|reasoning",
    ),
    ("Labels and manifests", r"label.*|aigc_.*|c2pa_.*"),
    ("Capacity of generation", r"max_concurrency|max_branches|adaptive_.*|reproducible|prefix_cache"),
    ("Reading along", r"reader_.*|reading_share"),
    ("Work of detection", r"workers|blocks_.*|max_request_blocks|max_document_tokens"),
    ("Files", r"extract_.*"),
    (
        "Limits of requests",
        r"requests_.*|tokens_per_.*|documents_per_.*|max_.*|.*(header|body|request)_seconds|drain_.*",
    ),
    ("Evidence that is spent", r"answers_.*|chance_findings"),
    ("Jobs and webhooks", r"jobs?_.*|webhook_.*"),
    ("Cases", r"cases?_.*"),
    ("Queue", r"queue_.*"),
    ("Public page", r"public.*"),
    ("Sign-in by an OpenID provider", r"oidc_.*"),
    ("Audit, logs, traces", r"audit_.*|log_level|traces_endpoint"),
    ("Canary", r"canary_.*|(gen|detect)_url|token|token_file"),
)
"""Headings of the settings page, and which fields stand under each: the first that matches."""

OTHERS = "Others"


def topic(field: str) -> str:
    """The heading of a setting.

    Args:
        field: its name without `TTMARK_`, in small letters.
    """
    return next((title for title, fields in TOPICS if re.fullmatch(fields, field)), OTHERS)


def headings() -> tuple[str, ...]:
    """In the order of the page."""
    return (*(title for title, _ in TOPICS), OTHERS)
