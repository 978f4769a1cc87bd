"""From what the user calls a model to the folder that holds its tokenizer."""

from pathlib import Path

from gen_service.demo_model import DEMO_MODEL_PATH
from services.runtime import StartupError


def resolve_model(model: str) -> Path:
    """The folder of `demo`, of a path, or of a hub id (its tokenizer alone is fetched).

    Raises:
        StartupError: no such folder, or the hub has no such model or cannot be reached.
    """
    if model == "demo":
        return DEMO_MODEL_PATH
    folder = Path(model)
    if folder.is_dir():
        return folder
    if model.startswith((".", "/", "~")) or model.count("/") != 1:
        raise StartupError(f"unknown model {model!r}: neither a folder nor a hub id such as owner/name")
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(model, "tokenizer.json")).parent
    except Exception as error:  # the library raises many kinds: no such model, gated, no network
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise StartupError(f"unknown model {model!r}: no such folder, and the hub says: {reason}") from error
