"""Keys whose texts no tokenizer here reads: a service names them in its log when it starts."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import SequenceMatcher
from pathlib import Path

import structlog

from ttmark.shared.keys.records import HeldKey
from ttmark.shared.tokenization import TextTokenizer, TokenizerMissing


def warn_of_unread(
    keys: Iterable[HeldKey], fingerprints: Mapping[str, str], folders: Iterable[Path] = ()
) -> None:
    """Logs which keys in use are for a tokenizer that nothing here has, and what has the nearest one by name.

    A fingerprint is a hash: that two tokenizers are alike shows in names alone. Folders that the state folder
    keeps are called after the model and the fingerprint that its tokenizer had then.

    Args:
        fingerprints: of tokenizers, by the model or folder that has them.
        folders: with further tokenizers, looked at if a key is not for one of the first.
    """
    unread: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        if key.detectable:
            unread[key.profile.tokenizer_fingerprint].append(key.key_id)
    found = dict(fingerprints)
    if unread.keys() - found.values():
        for folder in folders:
            with suppress(TokenizerMissing):
                found[str(folder)] = TextTokenizer.load(folder).fingerprint
    for fingerprint in sorted(unread.keys() - found.values()):
        wanted = f"{min(unread[fingerprint])}-{fingerprint[:8]}"
        nearest = max(found, key=lambda place: SequenceMatcher(None, wanted, Path(place).name).ratio())
        structlog.get_logger("ttmark.keys").warning(
            "no_tokenizer_of_keys",
            keys=sorted(unread[fingerprint]),
            tokenizer_fingerprint=fingerprint[:12],
            nearest_by_name=nearest,
            nearest_fingerprint=found[nearest][:12],
        )
