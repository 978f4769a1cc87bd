"""The tokenizer that texts of a model are read with, without torch."""

import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from ttmark.library.key import Key
from ttmark.services.model_folder import is_folder, resolve_model
from ttmark.services.startup import StartupError
from ttmark.services.state_folder import STATE_FOLDER, known_tokenizers
from ttmark.shared.tokenization import TOKENIZER_FILE, TextTokenizer, TokenizerMissing

_PROBES = (
    "The old lighthouse, built in 1,834, doesn't shine.\n\n    def f(x):\n        return x",
    "  Grüße — “naïve” 日本語 ไทย हिन्दी العربية 🦊 \t end ",
)
"""Texts by which two forms of a tokenizer are compared: what they do differently they do in any text."""


class TokenizerUnknown(ValueError):
    """A text cannot be read: nobody said which model's tokenizer the key's texts have."""


def text_tokenizer(source: Any) -> TextTokenizer:
    """Of a `Model`, a tokenizer of transformers, a folder or a model's name.

    transformers may hold a tokenizer in another form than its file, and a key's mark depends on the form. So
    one that came from a folder or by a hub name is the file there, unless the two read texts differently:
    then they are two tokenizers, which a warning says.

    Raises:
        TokenizerUnknown: it has none.
    """
    own = getattr(source, "tokenizer", source)
    if isinstance(own, TextTokenizer):
        return own
    name = _name(own)
    try:
        if isinstance(own, str | Path):
            return TextTokenizer.load(own if is_folder(name) else resolve_model(name))
        held, files = _held(own), [TextTokenizer.load(folder) for folder in _folders(name)]
    except (TokenizerMissing, StartupError) as error:
        raise TokenizerUnknown(str(error)) from error
    same = [file for file in files if all(file.encode(text) == held.encode(text) for text in _PROBES)]
    if files and not same:
        warnings.warn(
            f"transformers reads texts otherwise than the {TOKENIZER_FILE} of {name}: they are two "
            "tokenizers, and a text that is marked with one is not found with the other",
            stacklevel=2,
        )
    return same[0] if same else held


def _held(own: Any) -> TextTokenizer:
    try:
        return TextTokenizer(Tokenizer.from_str(own.backend_tokenizer.to_str()))
    except AttributeError:
        raise TokenizerUnknown(f"{type(own).__name__} is no tokenizer that reads without Python") from None


def _name(source: Any) -> str:
    return str(getattr(source, "name_or_path", source))


def _folders(name: str) -> list[Path]:
    """With a tokenizer's file: the folder of that name, or the revisions in the hub's cache, main first."""
    if is_folder(name):
        return [Path(name)] if (Path(name) / TOKENIZER_FILE).is_file() else []
    from huggingface_hub.constants import HF_HUB_CACHE

    cached, main = Path(HF_HUB_CACHE, "models--" + name.replace("/", "--")), ""
    with suppress(OSError):
        main = (cached / "refs/main").read_text()
    found = (file.parent for file in cached.glob(f"snapshots/*/{TOKENIZER_FILE}"))
    return sorted(found, key=lambda folder: (folder.name != main, folder.name))


def tokenizers_for(key: Key, model: Any) -> dict[str, TextTokenizer]:
    """The model's tokenizer, by each fingerprint that the key's texts may have been marked under.

    Beside its own these are the one of the form in which transformers holds it, and those that the key
    remembers of a model of that name: earlier commits took them.

    Raises:
        TokenizerUnknown: it has none.
    """
    chosen, own = text_tokenizer(model), getattr(model, "tokenizer", model)
    known_as = getattr(model, "name", _name(model))
    earlier = [fingerprint for fingerprint, name in key.models.items() if name == known_as]
    forms = {} if isinstance(own, TextTokenizer | str | Path) else {_held(own).fingerprint: _held(own)}
    return dict.fromkeys(earlier, chosen) | forms | {chosen.fingerprint: chosen}


def tokenizers_of(key: Key) -> dict[str, TextTokenizer]:
    """Those that the key's texts have, by fingerprint, found by the names that the key remembers or here.

    Raises:
        TokenizerUnknown: none is.
    """
    found = dict(key.tokenizers)
    for fingerprint in key.fingerprints:
        for place in (key.models.get(fingerprint), *known_tokenizers(STATE_FOLDER)):
            if place is None or fingerprint in found:
                continue
            with suppress(TokenizerUnknown):
                tokenizer = text_tokenizer(place)
                if tokenizer.fingerprint == fingerprint:
                    found[fingerprint] = tokenizer
        if fingerprint not in found and fingerprint in key.models:  # of a form in which transformers held it
            with suppress(TokenizerUnknown):
                found[fingerprint] = text_tokenizer(key.models[fingerprint])
    if not found:
        raise TokenizerUnknown(
            "the key knows no model yet: name the text's, as in detect(text, key, model='smollm2')"
        )
    return found
