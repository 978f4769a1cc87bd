"""From what the user calls a model to its folder and to the name that requests use."""

import re
from pathlib import Path

from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.gen_service.smollm2 import SMOLLM2
from ttmark.services.local.manifest import is_whole
from ttmark.services.local.smollm2 import get_smollm2, smollm2_folder
from ttmark.services.runtime import StartupError, no_start_after
from ttmark.services.state_folder import STATE_FOLDER

DEMO = "demo"
BY_NAME = (DEMO, SMOLLM2)
_HUB_ID = re.compile(r"[\w-][\w.-]{0,95}/[\w.-]{1,96}")


def default_model(state: Path) -> str:
    """`smollm2` where it lies in the state folder, else `demo`."""
    return SMOLLM2 if is_whole(smollm2_folder(state), whatever_sampling=True) else DEMO


def is_folder(name: str) -> bool:
    """Whether there is a folder of that name; a name too long for any is none."""
    try:
        return Path(name).is_dir()
    except OSError:
        return False


def check_model(model: str) -> str:
    """The model.

    Raises:
        ValueError: it is nothing that `resolve_model` knows.
    """
    if model not in BY_NAME and not is_folder(model) and not _HUB_ID.fullmatch(model):
        raise ValueError("a model is demo, smollm2, a folder that is there, or a hub id such as owner/name")
    return model


def model_id(model: str) -> str:
    """The name under which a model is served: `demo`, `smollm2`, a folder's name, or the hub id.

    What begins with / is a folder, be it one that only the generation service's container has.
    """
    if model.startswith("/") or (model not in BY_NAME and is_folder(model)):
        return Path(model).resolve().name
    return model


def resolve_model(model: str, state: Path = STATE_FOLDER) -> Path:
    """The folder of `demo`, of `smollm2` in the state folder, of a path, or of a hub id, which is fetched
    unless it is in the local cache.

    Raises:
        StartupError: no such folder, one of an earlier release that cannot be written, or the hub has no such
            model or cannot be reached.
    """
    if model == DEMO:
        return DEMO_MODEL_PATH
    if model == SMOLLM2:
        return _made_smollm2(state)
    if is_folder(model):
        return Path(model)
    if not _HUB_ID.fullmatch(model):
        raise StartupError(f"unknown model {model!r}: neither a folder nor a hub id such as owner/name")
    # Imported here: the detection service has no need of it.
    from ttmark.gen_service.hub import NotOnHub, hub_folder

    with no_start_after(NotOnHub):
        return hub_folder(model)


def _made_smollm2(state: Path) -> Path:
    folder = smollm2_folder(state)
    if not is_whole(folder, whatever_sampling=True):
        raise StartupError(f"model {SMOLLM2} is not in {folder}; `ttmark models get {SMOLLM2}` puts it there")
    return get_smollm2(state)  # an earlier release's folder has other sampling
