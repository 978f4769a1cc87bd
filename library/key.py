"""A key of the library: it marks texts of any model and finds them again."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from ttmark.shared.keys.key_codec import derive_prf_keys
from ttmark.shared.keys.key_files import EXPORT_FORMAT as EXPORTED
from ttmark.shared.keys.key_files import SECRET_BYTES, LibraryKeyFile, NotAKeyFile
from ttmark.shared.schemas.profile import Profile, profile_fields
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.vault.confidential import Confidential
from ttmark.shared.whole_file import write_whole

_MOST_BYTES = 1 << 20

Variant = tuple[Profile, tuple[bytes, ...]]
"""A profile and its 16-byte PRF keys."""


class KeyDetectsOnly(ValueError):
    """A key that was exported from a key store finds texts and marks none."""


class Key(Confidential):
    """A secret, and how texts are marked with it; made by `new` or `load`, kept by `save`.

    Whoever reads its file can forge its mark and remove it. It remembers the models that it was used with, so
    that `detect` knows how their texts are read.

    Attributes:
        models: names of models by the fingerprints of their tokenizers.
        tokenizers: those that are in memory, by fingerprint.
    """

    __slots__ = ("_exported", "_file", "models", "tokenizers")

    def __init__(self, file: LibraryKeyFile | None, exported: tuple[Variant, ...] = ()) -> None:
        self._file = file
        self._exported = exported
        self.models: dict[str, str] = {} if file is None else dict(file.models)
        self.tokenizers: dict[str, TextTokenizer] = {}

    @classmethod
    def new(cls, **profile: Any) -> "Key":
        """A key with 256 fresh bits; nothing is written before `save`.

        Args:
            profile: fields of a profile (`docs/spec.md`) that differ from a new key's default: scheme,
                block_size, context_width, parameters, pool.

        Raises:
            ValueError: there is no such profile.
        """
        fields = profile_fields(**profile)
        try:
            return cls(LibraryKeyFile(secret=os.urandom(SECRET_BYTES).hex(), profile=fields))
        except ValidationError as error:
            said = (
                f"a profile has no field {detail['loc'][-1]!r}"
                if detail["type"] == "extra_forbidden"
                else detail["msg"].removeprefix("Value error, ")
                for detail in error.errors()
            )
            raise ValueError("; ".join(said)) from None

    @classmethod
    def load(cls, path: str | Path) -> "Key":
        """A key from its file. A key from a file of `ttmark keys export` detects and does not mark.

        Raises:
            OSError: the file cannot be read.
            NotAKeyFile: it holds no key.
        """
        with Path(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        try:
            document = orjson.loads(content)
        except orjson.JSONDecodeError:
            raise NotAKeyFile(f"{path} is not the file of a key: no JSON") from None
        if isinstance(document, dict) and document.get("format") == EXPORTED:
            return cls(None, _exported(document))
        return cls(LibraryKeyFile.read(content))

    def save(self, path: str | Path) -> None:
        """Writes the key to a file that only its owner can read; replaces what is there.

        Raises:
            KeyDetectsOnly: it was exported, and has no secret to keep.
            NotWritten: it could not be written; what was at `path` is unchanged.
        """
        file = self._marking_file().model_copy(update={"models": self.models})
        write_whole(Path(path), file.written())

    def with_blocks_of(self, tokens: int) -> "Key":
        """The key of the same secret whose blocks have so many tokens."""
        file = self._marking_file()
        profile = {**file.profile, "block_size": tokens}
        return Key(LibraryKeyFile(secret=file.secret, profile=profile, models=self.models))

    def marking(self, tokenizer: TextTokenizer, name: str) -> Variant:
        """What marks the texts of a model, which the key remembers from now on.

        Raises:
            KeyDetectsOnly: it was exported.
        """
        variant = self._variant(self._marking_file(), tokenizer.fingerprint)
        self.remember(tokenizer, name)
        return variant

    def remember(self, tokenizer: TextTokenizer, name: str) -> None:
        """Texts of the key may be of a model with this tokenizer."""
        self.models.setdefault(tokenizer.fingerprint, name)
        self.tokenizers.setdefault(tokenizer.fingerprint, tokenizer)

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Of the tokenizers that its texts are known to have."""
        return tuple(dict.fromkeys([*(p.tokenizer_fingerprint for p, _ in self._exported), *self.models]))

    def variants(self, fingerprint: str) -> Iterable[Variant]:
        """What its texts with a tokenizer are looked for with."""
        if self._file is not None:
            return [self._variant(self._file, fingerprint)]
        return [one for one in self._exported if one[0].tokenizer_fingerprint == fingerprint]

    def _marking_file(self) -> LibraryKeyFile:
        if self._file is None:
            raise KeyDetectsOnly("this key was exported from a key store: it finds its texts, and marks none")
        return self._file

    @staticmethod
    def _variant(file: LibraryKeyFile, fingerprint: str) -> Variant:
        profile = file.profile_for(fingerprint)
        return profile, derive_prf_keys(bytes.fromhex(file.secret), profile)

    def __repr__(self) -> str:
        if self._file is None:
            return f"<Key of a key store, {len(self._exported)} versions: it detects and does not mark>"
        fields = self._file.profile
        size = fields.get("block_size", 2)
        return f"<Key {fields['scheme']}, blocks of {size} tokens; its secret is not shown>"


def _exported(document: dict[str, Any]) -> tuple[Variant, ...]:
    try:
        profile = Profile.model_validate(document["profile"])
        return tuple(
            (profile, tuple(bytes.fromhex(key) for key in version["prf_keys"]))
            for version in document["versions"]
            if "prf_keys" in version
        )
    except (KeyError, TypeError, ValueError):
        raise NotAKeyFile("not a file of `ttmark keys export`") from None
