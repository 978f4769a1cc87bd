"""What the routes work with; built by the composition root."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gen_service.api.chat_template import ChatTemplate
from gen_service.api.generator import Generator
from shared.http.errors import ModelNotFound
from shared.keys.unlocked import UnlockedKey


class KeySource(Protocol):
    """The keys in hand; `shared.keys.KeyCache` is one."""

    @property
    def ready(self) -> bool:
        """Whether there are keys, fresh enough to be used."""

    def get(self, key_id: str) -> UnlockedKey | None:
        """The key of any tenant, or None."""

    def for_tenant(self, tenant: str) -> list[UnlockedKey]:
        """The keys of one tenant."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model and how a conversation becomes its prompt.

    Attributes:
        chat_template: None where the tokenizer has none.
        created: Unix time at which it was loaded.
    """

    generator: Generator
    chat_template: ChatTemplate | None = None
    created: int = field(default_factory=lambda: int(time.time()))


@dataclass(frozen=True, slots=True)
class GenerationLimits:
    """What one request may ask for beyond what its schema limits.

    Attributes:
        max_completions: prompts times completions of each.
        keep_alive_seconds: silence after which a stream sends a comment, so that proxies keep it open.
    """

    max_completions: int = 64
    keep_alive_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class GenerationBackend:
    """Models by the id that requests name, keys, and limits.

    Attributes:
        default_keys: key ids used when a request names none and the key is the caller's tenant's and fits the
            model's tokenizer; the first that does.
    """

    models: Mapping[str, ServedModel]
    keys: KeySource
    default_keys: Sequence[str] = ()
    limits: GenerationLimits = field(default_factory=GenerationLimits)

    def model(self, model_id: str) -> ServedModel:
        """The model that a request names.

        Raises:
            ModelNotFound: there is no such model here.
        """
        try:
            return self.models[model_id]
        except KeyError:
            raise ModelNotFound("There is no such model; GET /v1/models lists them.", param="model") from None
