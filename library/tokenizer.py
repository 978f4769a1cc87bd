"""The tokenizer that texts of a model are read with, without torch."""

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from ttmark.library.key import Key
from ttmark.services.model_folder import is_folder, resolve_model
from ttmark.services.startup import StartupError
from ttmark.services.state_folder import STATE_FOLDER, known_tokenizers
from ttmark.shared.tokenization import TOKENIZER_FILE, TextTokenizer, TokenizerMissing


class TokenizerUnknown(ValueError):
    """A text cannot be read: nobody said which model's tokenizer the key's texts have."""


def text_tokenizer(source: Any) -> TextTokenizer:
    """Of a `Model`, a tokenizer of transformers, a folder or a model's name.

    A tokenizer of transformers that came from a folder is that folder's file: transformers may hold it in
    another form, and a key's mark depends on the form.

    Raises:
        TokenizerUnknown: it has none.
    """
    own = getattr(source, "tokenizer", source)
    if isinstance(own, TextTokenizer):
        return own
    try:
        if isinstance(own, str | Path):
            return TextTokenizer.load(own if is_folder(str(own)) else resolve_model(str(own)))
        folder = Path(str(getattr(own, "name_or_path", "")))
        if is_folder(str(folder)) and (folder / TOKENIZER_FILE).is_file():
            return TextTokenizer.load(folder)
        backend = own.backend_tokenizer
    except (TokenizerMissing, StartupError) as error:
        raise TokenizerUnknown(str(error)) from error
    except AttributeError:
        raise TokenizerUnknown(f"{type(source).__name__} is no tokenizer that reads without Python") from None
    return TextTokenizer(Tokenizer.from_str(backend.to_str()))


def tokenizers_of(key: Key) -> dict[str, TextTokenizer]:
    """Those that the key's texts have, by fingerprint, found by the names that the key remembers or here.

    Raises:
        TokenizerUnknown: none is.
    """
    found = dict(key.tokenizers)
    for fingerprint in key.fingerprints:
        if fingerprint in found:
            continue
        for place in (key.models.get(fingerprint), *known_tokenizers(STATE_FOLDER)):
            if place is None:
                continue
            try:
                tokenizer = text_tokenizer(place)
            except TokenizerUnknown:
                continue
            if tokenizer.fingerprint == fingerprint:
                found[fingerprint] = tokenizer
                break
    if not found:
        raise TokenizerUnknown(
            "the key knows no model yet: name the text's, as in detect(text, key, model='smollm2')"
        )
    return found
