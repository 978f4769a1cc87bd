"""For each setting a value that is not its default, and that its class takes."""

import math
from pathlib import Path
from typing import Any, get_args

from annotated_types import Le, Lt
from pydantic.fields import FieldInfo

from ttmark.gen_service.demo_model import DEMO_MODEL_PATH

WORDS = {
    "host": "127.0.0.2",
    "traces_endpoint": "http://collector:4318/v1/traces",
    "cors_origins": "https://app.example.org",
    "replica_id": "replica-7",
    "model": "demo",
    "default_key": "main,other",
    "console_url": "https://console.example.org",
    "label": "eu",
    "signpost": "https://detect.example.org",
    "aigc_producer": "example",
    "tokenizers": str(DEMO_MODEL_PATH),
    "reader_tokenizer": str(DEMO_MODEL_PATH),
    "reader_url": "http://127.0.0.1:9",
    "reader_model": "small",
    "reader_token": "a token",
    "public_contact": "mailto:tokens@example.org",
    "oidc_issuer": "https://login.example.org",
    "oidc_audience": "https://detect.example.org",
    "oidc_client_id": "console",
    "oidc_tenant": "acme",
    "oidc_scopes": "detect,detect:evidence",
    "oidc_evidence_group": "moderators",
    "trusted_proxies": "10.0.0.0/8",
    "webhook_hosts": "hooks.example.org",
    "webhook_secret": "whsec_" + "A" * 32,
    "store_url": "redis://store:6379/0",
    "kek": "ab" * 32,
    "token": "ttm_" + 16 * "a" + "_" + 64 * "b",
    "gen_url": "http://gen.example.org:1",
    "detect_url": "http://detect.example.org:1",
    "public_fpr": "1e-6",
    "detectability_fpr": "1e-6",
}


def changed_value(name: str, field: FieldInfo, folder: Path) -> str:
    """As it stands in an environment variable; files and folders that it names are made in `folder`."""
    if name in WORDS:
        return WORDS[name]
    if name.endswith("_file"):
        path = folder / name
        path.touch()
        return str(path)
    if name in ("state", "audit_folder"):
        path = folder / name
        path.mkdir(exist_ok=True)
        return str(path)
    default: Any = field.default
    choices = [choice for choice in get_args(field.annotation) if isinstance(choice, str)]
    if choices:
        return next(choice for choice in choices if choice != default)
    if isinstance(default, bool):
        return str(not default).lower()
    return _number(default, field.metadata)


def _number(default: float | None, limits: list[Any]) -> str:
    """The next number, up or down, within what the field allows."""
    start = 1 if default is None else default
    upper: list[Any] = [one.le for one in limits if isinstance(one, Le)]
    upper += [one.lt for one in limits if isinstance(one, Lt)]
    return str(start + 1 if start + 1 < min([math.inf, *upper]) else start / 2)
