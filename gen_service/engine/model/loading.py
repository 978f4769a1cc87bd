"""Loads a model: as a process of its own saw it, or by transformers, which is imported for that alone."""

import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import orjson
import structlog
import torch
from safetensors import SafetensorError

from ttmark.gen_service.engine.errors import ModelLoadError
from ttmark.gen_service.engine.model.autotune import Choice, ChoiceFile, choice_key, choices_among
from ttmark.gen_service.engine.model.loaded_model import Acceleration, LoadedModel, ModelFacts, usable_device
from ttmark.gen_service.engine.model.plain_llama import open_llama
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.tokenization import TextTokenizer, TokenizerMissing


def load_model(model: str, settings: EngineSettings) -> LoadedModel:
    """Loads a folder, or a hub id from the local cache or else the hub.

    On a CPU, where choices are kept, a process of its own measures what runs fastest and compares it with
    transformers: what that takes is free again once it ends.

    Raises:
        ModelLoadError: unknown model, no tokenizer, an architecture without branchable attention, or logits
            that differ from the model's own.
    """
    folder = _folder(model)
    try:
        tokenizer = TextTokenizer.load(folder)
    except TokenizerMissing as error:
        raise ModelLoadError(f"{model}: {error}") from error
    name = settings.model_id or (folder.resolve().name if Path(model).is_dir() else model)
    if settings.choices is None or usable_device(settings.device).type != "cpu":
        return _by_transformers(name, folder, tokenizer, settings)
    file, options = ChoiceFile(settings.choices), choices_among(settings)
    key = choice_key(folder, options, settings.quantization)
    for chosen in (file.find(key, options), None):
        if chosen is None:
            chosen = _tried_apart(name, folder, settings)
            file.keep(key, chosen)
        loaded = _load(chosen, name, folder, tokenizer, settings)
        if loaded is not None:
            return loaded
    raise ModelLoadError(f"{name}: {folder} cannot be read as it was a moment ago")


def _folder(model: str) -> Path:
    if Path(model).is_dir():
        return Path(model)
    from ttmark.gen_service.hub import NotOnHub, hub_folder  # a client of the web, which a folder needs not

    try:
        return hub_folder(model)
    except NotOnHub as error:
        raise ModelLoadError(str(error)) from error


def _by_transformers(
    name: str, folder: Path, tokenizer: TextTokenizer, settings: EngineSettings
) -> LoadedModel:
    from ttmark.gen_service.engine.model.transformers_model import fastest_runner

    runner, facts = fastest_runner(name, folder, settings)
    return LoadedModel(name, runner.model, tokenizer, facts, Acceleration.as_in(runner))


def _load(
    chosen: Choice, name: str, folder: Path, tokenizer: TextTokenizer, settings: EngineSettings
) -> LoadedModel | None:
    """A model as it was chosen; None: what was kept of it does not hold any longer."""
    torch.set_num_threads(chosen.threads)
    if chosen.plain is None:
        settings = replace(settings, dtype=chosen.dtype, threads=chosen.threads)
        return _by_transformers(name, folder, tokenizer, settings)
    try:
        model, acceleration = open_llama(folder, chosen.dtype, **chosen.plain["model"])
        facts = ModelFacts(**chosen.plain["facts"])
    except (
        LookupError,
        AttributeError,
        TypeError,
        ValueError,
        RuntimeError,
        OSError,
        SafetensorError,
    ) as error:
        structlog.get_logger("ttmark.engine").warning("kept_choice_unusable", model=name, error=repr(error))
        return None
    return LoadedModel(name, model, tokenizer, facts, acceleration)


def _tried_apart(name: str, folder: Path, settings: EngineSettings) -> Choice:
    """See `speed_trial.py`.

    Raises:
        ModelLoadError: the model cannot be served, or the process has ended without a word.
    """
    threads = choices_among(settings)[-1].threads  # all that there are to choose from
    given = asdict(replace(settings, choices=None))
    asked = {"name": name, "folder": str(folder), "settings": given, "threads": threads}
    command = [sys.executable, "-m", "ttmark.gen_service.engine.model.speed_trial"]
    # Its standard input stays open: it ends when this process does.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        if child.stdin is not None and child.stdout is not None:
            child.stdin.write(orjson.dumps(asked) + b"\n")
            child.stdin.flush()
            said = child.stdout.read().splitlines()
    try:
        answer = orjson.loads(said[-1])
        if "error" not in answer:
            return Choice(**answer)
    except (LookupError, TypeError, ValueError):
        answer = {"error": f"{name}: it cannot be measured (code {child.returncode})"}
    raise ModelLoadError(answer["error"])
