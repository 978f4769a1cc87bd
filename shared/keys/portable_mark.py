"""Files that say how a mark is looked for without this software, and commit to its key without showing it.

`docs/portable-marks.md` specifies them for other implementations.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Self, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ttmark.shared.schemas.profile import Fingerprint, ForeignProfile, Profile
from ttmark.shared.vault.envelope import canonical_json
from ttmark.shared.watermark.foreign import ForeignMark
from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES

FORMAT: Final = "ttmark portable mark 1"
OWN: Final = "ttmark"
"""The scheme of our own marks: a profile in parameters, PRF keys as the secret."""
MOST_BYTES = 1 << 20
_DOMAIN = FORMAT.encode() + b"\0"

File = TypeVar("File", bound="MarkFile")


class MarkRefused(ValueError):
    """A file of a mark, or of its secret, is not what it says; the message repeats no secret."""


class MarkFile(BaseModel):
    """A file of JSON that is read strictly."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    WHAT: ClassVar[str]

    @classmethod
    def read(cls: type[File], content: bytes) -> File:
        """What a file holds.

        Raises:
            MarkRefused: it is another file.
        """
        try:
            return cls.model_validate(json.loads(content, object_pairs_hook=_unique))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or first["msg"].removeprefix("Value error, ")
            raise MarkRefused(f"not {cls.WHAT}: {where}") from None
        except (ValueError, RecursionError):
            raise MarkRefused(f"not {cls.WHAT}: no JSON, or a member stands there twice") from None

    def written(self) -> bytes:
        return orjson.dumps(self.stored(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def stored(self) -> dict[str, Any]:
        """As JSON values; what is not set is left out."""
        return self.model_dump(mode="json", exclude_none=True)


class MarkSecret(MarkFile):
    """What the key holder keeps: the key, and the random salt without which a key could be guessed.

    Attributes:
        salt: 32 bytes, in hexadecimal digits.
        secrets: of another system's scheme by its names; of ours `prf_keys`, each in hexadecimal digits.
    """

    WHAT = "the secret file of a portable mark"

    format: Literal["ttmark mark secret 1"] = "ttmark mark secret 1"
    salt: str = Field(pattern=r"^[0-9a-f]{64}$", repr=False)
    secrets: Mapping[str, Any] = Field(repr=False)


class PortableMark(MarkFile):
    """A mark without its key.

    Attributes:
        parameters: by the original's names; of our own marks a profile without the tokenizer's fingerprint.
        context: which tokens the draw of a token depends on, and which draws count once.
        model: the name of a model with the tokenizer, for people: nothing follows from it.
        commitment: SHA-256 over all but `model`, with salt and secrets.
    """

    WHAT = "the file of a portable mark"

    format: Literal["ttmark portable mark 1"] = FORMAT
    scheme: str
    parameters: Mapping[str, Any]
    context: Mapping[str, int | str]
    tokenizer_fingerprint: Fingerprint
    model: str | None = None
    commitment: str = Field(pattern=r"^[0-9a-f]{64}$")

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.scheme != OWN and self.scheme not in FOREIGN_SCHEMES:
            known = ", ".join([*FOREIGN_SCHEMES, OWN])
            raise ValueError(f"its scheme is {self.scheme}, and known are {known}")
        try:
            rules = context_rules(self.profile)
        except (TypeError, ValueError):
            raise ValueError(f"its parameters are not those of {self.scheme}") from None
        if self.context != rules:
            raise ValueError(f"its context rules are not those of {self.scheme}")
        return self

    @classmethod
    def of(cls, profile: Profile | ForeignProfile, secret: MarkSecret, model: str | None = None) -> Self:
        """The description of a mark with a commitment to its secret."""
        fields = _described(profile)
        return cls(**fields, model=model, commitment=_digest(fields, secret))

    @property
    def profile(self) -> Profile | ForeignProfile:
        """What our own services call it.

        Raises:
            ValueError: there is no such profile.
        """
        if self.scheme == OWN:
            return Profile.model_validate(
                {**self.parameters, "tokenizer_fingerprint": self.tokenizer_fingerprint}
            )
        return ForeignProfile(
            scheme=self.scheme, parameters=self.parameters, tokenizer_fingerprint=self.tokenizer_fingerprint
        )

    def check(self, secret: MarkSecret) -> None:
        """Raises MarkRefused where the mark does not commit to this secret: it, or the mark, was changed."""
        fields = self.model_dump(mode="json", exclude={"model", "commitment"})
        if not hmac.compare_digest(_digest(fields, secret), self.commitment):
            raise MarkRefused(
                "the mark does not commit to this secret: the secret is another one, or a file was changed"
            )

    def foreign(self, secret: MarkSecret) -> ForeignMark:
        """Another system's mark with its key.

        Raises:
            MarkRefused: the mark does not commit to the secret, or there is no such key.
        """
        self.check(secret)
        try:
            return FOREIGN_SCHEMES[self.scheme].mark(self.parameters, secret.secrets)
        except (KeyError, TypeError, ValueError):
            raise MarkRefused(f"the secret is no key of {self.scheme}") from None

    def prf_keys(self, secret: MarkSecret) -> tuple[bytes, ...]:
        """The PRF keys of a mark of ours, 16 bytes each.

        Raises:
            MarkRefused: the mark does not commit to the secret, or it holds no such keys.
        """
        self.check(secret)
        profile, keys = self.profile, secret.secrets.get("prf_keys")
        try:
            found = tuple(map(bytes.fromhex, keys)) if isinstance(keys, list) else ()
        except (TypeError, ValueError):
            found = ()
        pool = profile.pool if isinstance(profile, Profile) else 0
        if len(found) != pool or {len(key) for key in found} != {16}:
            raise MarkRefused("the secret has no PRF keys of this profile")
        return found


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object's members: two parsers would disagree on which of two with one name counts."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError
    return members


def context_rules(profile: Profile | ForeignProfile) -> dict[str, int | str]:
    """`tokens` before the scored one, or the first of a block, that have a part in its draw.

    `first`: tokens with fewer before them are left out, or their context is filled up with -1. `once`: what
    counts once where it comes again.
    """
    if isinstance(profile, Profile):
        return {"tokens": profile.context_width, "first": "left out", "once": "context and block"}
    given: Mapping[str, Any] = profile.parameters
    match profile.scheme:
        case "sglang-gumbel":
            return {"tokens": given["context_window"], "first": "left out", "once": "context"}
        case "kgw":
            own = given["seeding_scheme"] == "selfhash"
            return {"tokens": given["context_width"] - own, "first": "left out", "once": "seed and token"}
        case "synthid-text":
            return {"tokens": given["ngram_len"] - 1, "first": "left out", "once": "context, and hash"}
        case _:
            return {"tokens": given["context_width"], "first": "filled up with -1", "once": "context"}


def _described(profile: Profile | ForeignProfile) -> dict[str, Any]:
    """The fields of the file that the commitment covers."""
    own = isinstance(profile, Profile)
    given = profile.stored() if own else profile.parameters
    return {
        "format": FORMAT,
        "scheme": OWN if own else profile.scheme,
        "parameters": {name: given[name] for name in given if name != "tokenizer_fingerprint"},
        "context": context_rules(profile),
        "tokenizer_fingerprint": profile.tokenizer_fingerprint,
    }


def _digest(fields: Mapping[str, Any], secret: MarkSecret) -> str:
    said = canonical_json({**fields, "secrets": dict(secret.secrets)})
    return hashlib.sha256(_DOMAIN + bytes.fromhex(secret.salt) + said).hexdigest()
