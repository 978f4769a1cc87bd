"""What `ttmark up` keeps in the state folder, and where: models, tokenizers, ledgers, measured choices."""

import os
import re
import stat
from pathlib import Path

from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.services.startup import StartupError
from ttmark.shared.tokenization import TOKENIZER_FILE, TextTokenizer
from ttmark.shared.whole_file import AS_UMASK_SAYS, make_folder, write_whole

STATE_FOLDER = Path(".ttmark")
STATE_MEANING = "State folder of `ttmark up`: models, tokenizers, and what was seen of the key store."


def check_state_folder(folder: Path) -> None:
    """Refuses a folder in which others could put keys and models of theirs, or links in place of logs.

    Raises:
        StartupError: it is another user's, or its group or everybody can write to it.
    """
    try:
        status = folder.stat()
    except OSError:
        return  # it is made, or who makes it says why not
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StartupError(
            f"others can write to {folder}: chown it to yourself and chmod 0700 it, or give another --state"
        )


def models_folder(state: Path) -> Path:
    """A folder for each model whose texts can be read: the whole model, or its tokenizer alone."""
    return state / "models"


def choices_file(state: Path) -> Path:
    """What was measured of models on this machine, which may be deleted at any time."""
    return state / "choices.json"


def known_tokenizers(state: Path) -> list[Path]:
    """Folders with a tokenizer.json: the demo model's, and all that the state folder holds."""
    found = models_folder(state).glob(f"*/{TOKENIZER_FILE}")
    return [DEMO_MODEL_PATH, *sorted(path.parent for path in found)]


def with_tokenizer(folder: Path) -> Path:
    """The folder.

    Raises:
        ValueError: it holds no tokenizer.json.
    """
    try:
        found = (folder / TOKENIZER_FILE).is_file()
    except OSError:
        found = False
    if not found:
        raise ValueError(f"each is a folder that holds a {TOKENIZER_FILE}")
    return folder


def model_of(folder: str, fingerprint: str) -> str:
    """What the model is called whose tokenizer lies in a folder, as far as the folder's name says."""
    place = Path(folder).resolve()
    return "demo" if place == DEMO_MODEL_PATH.resolve() else place.name.removesuffix(f"-{fingerprint[:8]}")


def remember_tokenizer(state: Path, name: str, tokenizer: TextTokenizer) -> None:
    """Keeps a model's tokenizer, so that its texts can be read without the model.

    Args:
        name: of the model; the folder's name says it, beside the beginning of the fingerprint.

    Raises:
        NotWritten: it cannot be kept.
    """
    readable = re.sub(r"[^\w.-]+", "-", name)
    folder = models_folder(state) / f"{readable}-{tokenizer.fingerprint[:8]}"
    if (folder / TOKENIZER_FILE).is_file():
        return
    make_folder(folder)
    text = tokenizer.backend.to_str(pretty=True)
    write_whole(folder / TOKENIZER_FILE, text.encode(), mode=AS_UMASK_SAYS)
