"""Models from the Hugging Face hub."""

from pathlib import Path

from huggingface_hub import snapshot_download

_FILES = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja"]


class NotOnHub(Exception):
    """The hub has no such model, or cannot be reached; the message is one line that says why."""


def hub_folder(model: str) -> Path:
    """The folder of a hub id, which is fetched unless it is in the local cache.

    Raises:
        NotOnHub: it cannot be had.
    """
    try:
        return Path(snapshot_download(model, allow_patterns=_FILES))
    except Exception as error:  # the library raises many kinds: no such model, gated, no network
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise NotOnHub(f"unknown model {model!r}: no such folder, and the hub says: {reason}") from error
