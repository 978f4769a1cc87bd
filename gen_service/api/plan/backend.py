"""What the routes work with; built by the composition root."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.api.plan.stages import Hook
from ttmark.gen_service.api.plan.watermark_report import ReceiptRule
from ttmark.shared.http.service_errors import ModelNotFound
from ttmark.shared.keys.key_cache import KeyCache


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What one request may ask for beyond what its schema limits.

    Attributes:
        max_completions: prompts times completions of each.
        max_read_tokens: tokens of the texts of a request for readings, together.
        keep_alive_seconds: silence after which a stream sends a comment, so that proxies keep it open.
    """

    max_completions: int = 64
    max_read_tokens: int = 131_072
    keep_alive_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class GenerationBackend:
    """Models by the id that requests name, keys, and limits.

    Attributes:
        default_keys: key ids used when a request names none and the key is the caller's tenant's and fits the
            model's tokenizer; the first that does.
        receipts: what is said of the detectability of completions, and to whom.
        opening_bits: surprise of a completion's tokens before its first mark.
        ignore_unknown_fields: answers requests that have fields which nobody knows.
    """

    models: Mapping[str, ServedModel]
    keys: KeyCache
    default_keys: Sequence[str] = ()
    limits: RequestLimits = field(default_factory=RequestLimits)
    receipts: ReceiptRule = field(default_factory=ReceiptRule)
    hooks: Sequence[Hook] = ()
    opening_bits: float = 0.0
    ignore_unknown_fields: bool = False

    def __post_init__(self) -> None:
        for hook in self.hooks:
            for name, model in self.models.items():
                hook.serve(name, model)

    def earlier_answer(self, text: str) -> str:
        """What the model wrote of an answer that comes back to it."""
        for hook in self.hooks:
            text = hook.earlier_answer(text)
        return text

    def model(self, model_id: str) -> ServedModel:
        """The model that a request names.

        Raises:
            ModelNotFound: there is no such model here.
        """
        try:
            return self.models[model_id]
        except KeyError:
            near = next((name for name in self.models if name.lower() == model_id.lower()), None)
            hint = "GET /v1/models lists them."
            if near:
                hint = f"did you mean {near!r}?"
            elif len(self.models) == 1:
                hint = f"this service has {next(iter(self.models))!r} alone."
            raise ModelNotFound(f"There is no such model; {hint}", param="model") from None
