"""From what the user calls a model to its folder and to the name that requests use."""

from pathlib import Path

from gen_service.demo_model import DEMO_MODEL_PATH
from services.runtime import StartupError

DEMO = "demo"
MODEL_FILES = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja"]


def model_id(model: str) -> str:
    """The name under which a model is served: `demo`, a folder's name, or the hub id."""
    return Path(model).resolve().name if model != DEMO and Path(model).is_dir() else model


def resolve_model(model: str) -> Path:
    """The folder of `demo`, of a path, or of a hub id, which is fetched unless it is in the local cache.

    Raises:
        StartupError: no such folder, or the hub has no such model or cannot be reached.
    """
    if model == DEMO:
        return DEMO_MODEL_PATH
    folder = Path(model)
    if folder.is_dir():
        return folder
    if model.startswith((".", "/", "~")) or model.count("/") != 1:
        raise StartupError(f"unknown model {model!r}: neither a folder nor a hub id such as owner/name")
    # Imported here: the detection service has no need of it.
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, allow_patterns=MODEL_FILES))
    except Exception as error:  # the library raises many kinds: no such model, gated, no network
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise StartupError(f"unknown model {model!r}: no such folder, and the hub says: {reason}") from error
