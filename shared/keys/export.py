"""What a second implementation needs to detect with a key: its profile and PRF keys, never a secret."""

import orjson

from ttmark.shared.keys.records import KeyInfo
from ttmark.shared.keys.unlocked import UnlockedKey

FORMAT = "ttmark keys 1"


def export_file(info: KeyInfo, key: UnlockedKey) -> bytes:
    """A key as a file of JSON (`docs/spec.md`, section "Exported keys").

    Versions that are no longer detected are named without PRF keys.
    """
    prf_keys = {version.version: version.prf_keys for version in key.detectable}
    versions = []
    for version in info.versions:
        shown = version.model_dump(mode="json", exclude={"revealed_at"})
        if version.version in prf_keys:
            shown["prf_keys"] = [prf_key.hex() for prf_key in prf_keys[version.version]]
        versions.append(shown)
    document = {
        "format": FORMAT,
        "key_id": info.key_id,
        "tenant": info.tenant,
        "profile": info.profile.stored(),
        "versions": versions,
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
