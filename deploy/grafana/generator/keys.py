"""Keys, their store, and who was not let in."""

from deploy.grafana.generator.layout import Dashboard, Panel, Query, Row
from deploy.grafana.generator.queries import per_second

KEYS = Dashboard(
    uid="ttmark-keys",
    title="TTMark / Keys and security",
    description="Freshness and agreement of keys, the key store, refused tokens.",
    rows=(
        Row(
            "Key store",
            (
                Panel(
                    "Store reachable",
                    "1 if the last attempt to read the key store succeeded.",
                    (Query("min by (job, instance) (ttmark_key_store_reachable)", "{{job}} {{instance}}"),),
                    bad_below=1,
                ),
                Panel(
                    "Age of the keys in hand",
                    "As a share of the age at which the service stops using them.",
                    (
                        Query(
                            "ttmark_key_cache_age_seconds / ttmark_key_cache_max_age_seconds",
                            "{{job}} {{instance}}",
                        ),
                    ),
                    unit="percentunit",
                    bad_above=0.5,
                ),
                Panel(
                    "Records refused",
                    "Damaged, altered or rolled back; always 0.",
                    (Query("ttmark_key_records_refused", "{{job}} {{instance}}"),),
                    bad_above=1,
                ),
            ),
        ),
        Row(
            "Keys",
            (
                Panel(
                    "Changes known",
                    "Epochs of all keys. Replicas that know the same show the same; promote only then.",
                    (Query("ttmark_key_cache_epochs", "{{job}} {{instance}}"),),
                ),
                Panel(
                    "Keys in hand",
                    "Keys of all tenants.",
                    (Query("ttmark_key_cache_keys", "{{job}} {{instance}}"),),
                ),
                Panel(
                    "Versions by state",
                    "As the replica with the fewest knows them.",
                    (Query("min by (state) (ttmark_key_versions)", "{{state}}"),),
                ),
            ),
        ),
        Row(
            "Access",
            (
                Panel(
                    "Refused tokens",
                    "401: missing, wrong or expired; 403: the token lacks a scope.",
                    (per_second("ttmark_http_requests_total", "job, status", 'status=~"401|403"'),),
                    unit="reqps",
                ),
                Panel(
                    "Throttled",
                    "429 by service: limits of tokens, or a full queue.",
                    (per_second("ttmark_http_requests_total", "job", 'status="429"'),),
                    unit="reqps",
                ),
                Panel(
                    "Limits reached",
                    "Refusals by the limit of an access token; `variants`: almost equal documents.",
                    (per_second("ttmark_limit_refusals_total", "job, limit"),),
                    unit="reqps",
                ),
                Panel(
                    "Limits shared",
                    "0 while a replica cannot reach the store and counts for itself alone.",
                    (Query("min by (job, instance) (ttmark_limit_counters_shared)", "{{job}} {{instance}}"),),
                    bad_below=1,
                ),
                Panel(
                    "Bad requests",
                    "400, 404, 413, 415 and 422 by service.",
                    (
                        per_second(
                            "ttmark_http_requests_total", "job, status", 'status=~"400|404|413|415|422"'
                        ),
                    ),
                    unit="reqps",
                ),
                Panel(
                    "Versions running",
                    "Instances by version of TTMark.",
                    (Query("count by (job, version) (ttmark_build_info)", "{{job}} {{version}}"),),
                    kind="stat",
                ),
            ),
        ),
    ),
)
