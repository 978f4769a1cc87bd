"""What a request may ask, and with which keys."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ttmark.detect_service.documents.backend import DetectionBackend, TenantKeys, TokenizerSet
from ttmark.shared.access.scopes import Principal, Scope, allowed_rate
from ttmark.shared.http.auth import check_scope
from ttmark.shared.http.service_errors import KeyNotFound, Unprocessable
from ttmark.shared.keys.held_keys import (
    ForeignKey,
    HeldKey,
    UnlockedKey,
    UnlockedVersion,
    foreign_keys,
    own_keys,
)
from ttmark.shared.schemas.detection.detect import (
    DEFAULT_BETA,
    DEFAULT_FPR,
    AlignedRequest,
    CombinedRequest,
    DetectionRequest,
    DetectionResult,
    Document,
)
from ttmark.shared.tokenization import TextTokenizer


@dataclass(frozen=True, slots=True)
class OtherKeys:
    """How keys of other systems are tried.

    Attributes:
        cost: of a request under a key, of documents with so many tokens, in hashed blocks.
        added: to an `Examination`'s result of document number so and so, and what our own keys decided.
    """

    cost: Callable[[DetectionRequest, ForeignKey, Sequence[int]], float]
    added: Callable[[Any, int, DetectionResult, Any], DetectionResult]


@dataclass(frozen=True, slots=True)
class KeySelection:
    """Keys to try.

    Attributes:
        skipped: ids of those that were left out because their tokenizer is not installed.
        own, foreign: those of this system, and of others.
        tries: the versions of our own that are tried on each document.
        numbers: of the versions of each key that are tried, by its id.
        other_keys: tries the foreign ones; None: nothing does.
    """

    keys: Sequence[HeldKey]
    skipped: Sequence[str]
    own: Sequence[UnlockedKey]
    foreign: Sequence[ForeignKey]
    tries: Sequence[tuple[UnlockedKey, UnlockedVersion]]
    numbers: Mapping[str, Sequence[int]]
    other_keys: OtherKeys | None = None

    @classmethod
    def of(cls, keys: Sequence[HeldKey], skipped: Sequence[str] = ()) -> "KeySelection":
        own, foreign = own_keys(keys), foreign_keys(keys)
        detectable = {key.key_id: key.detectable for key in own}
        tries = [(key, version) for key in own for version in detectable[key.key_id]]
        numbers = {name: [version.version for version in versions] for name, versions in detectable.items()}
        numbers |= {key.key_id: [version.version for version in key.detectable] for key in foreign}
        return cls(keys, skipped, own, foreign, tries, numbers)

    @property
    def versions(self) -> int:
        """How many are tried on each document."""
        return sum(len(numbers) for numbers in self.numbers.values())


def permitted(request: DetectionRequest, caller: Principal) -> DetectionRequest:
    """The request as `caller` may ask it: without evidence at one of its rates, with the default beta.

    Raises:
        Forbidden: it asks for evidence.
        Unprocessable: naming the rates, the beta or the reader that is allowed.
    """
    if caller.sees_evidence:
        return request
    if request.evidence == "blocks":
        check_scope(caller, Scope.DETECT_EVIDENCE)
    if isinstance(request, AlignedRequest) and request.beta != DEFAULT_BETA:
        raise Unprocessable(
            f"Without the scope detect:evidence beta is {DEFAULT_BETA:g}; leave it out.", param="beta"
        )
    if isinstance(request, CombinedRequest) and request.reader != "auto":
        raise Unprocessable("Without the scope detect:evidence reader is auto; leave it out.", param="reader")
    wanted = request.fpr if "fpr" in request.model_fields_set else None
    rate = allowed_rate(wanted, DEFAULT_FPR, caller.rates)
    if rate is None:
        allowed = " or ".join(f"{one:g}" for one in caller.rates)
        raise Unprocessable(
            f"Without the scope detect:evidence this access token asks at an fpr of {allowed}.",
            param="fpr",
        )
    return request.model_copy(update={"fpr": rate})


def check_vocabulary(documents: Sequence[Document], tokenizers: Sequence[TextTokenizer | None]) -> None:
    """Refuses token ids that no tokenizer of the keys gives, where all are known. Raises Unprocessable."""
    known = [tokenizer.id_bound for tokenizer in tokenizers if tokenizer is not None]
    if len(known) < len(tokenizers) or not known:
        return
    bound = max(known)
    for index, document in enumerate(documents):
        if document.token_ids and max(document.token_ids) >= bound:
            raise Unprocessable(
                f"Token ids of these keys' tokenizers are below {bound}; document {index} holds "
                f"{max(document.token_ids)}.",
                param=f"inputs[{index}].token_ids",
            )


def select_keys(
    request: DetectionRequest, tenant: str, source: TenantKeys, tokenizers: TokenizerSet
) -> KeySelection:
    """The tenant's keys that the request names, or all of them.

    Raises:
        KeyNotFound: a named key does not exist or is another tenant's, or the tenant has none.
        Unprocessable: a named key cannot read text because its tokenizer is not installed here.
    """
    mine = {key.key_id: key for key in source.for_tenant(tenant)}
    needs_tokenizer = any(document.text is not None for document in request.inputs)
    if request.keys is None:
        if not mine:
            raise KeyNotFound(
                "This token's tenant has no key to detect with; make one with `ttmark keys create`."
            )
        skipped = [
            key.key_id
            for key in mine.values()
            if needs_tokenizer and key.profile.tokenizer_fingerprint not in tokenizers
        ]
        if len(skipped) == len(mine):
            raise Unprocessable(
                "No key's tokenizer is installed in this service; send token_ids.", param="inputs"
            )
        return KeySelection.of([key for key in mine.values() if key.key_id not in skipped], skipped)
    wanted = list(dict.fromkeys(request.keys))
    for index, key_id in enumerate(wanted):
        if key_id not in mine:
            raise KeyNotFound("There is no such key.", param=f"keys[{index}]")
        fingerprint = mine[key_id].profile.tokenizer_fingerprint
        if needs_tokenizer and fingerprint not in tokenizers:
            raise Unprocessable(
                f"The tokenizer of key {key_id} (fingerprint {fingerprint[:12]}...) is not installed in this "
                "service: add its folder to TTMARK_TOKENIZERS, or send token_ids.",
                param=f"keys[{index}]",
            )
    return KeySelection.of([mine[key_id] for key_id in wanted])


def check_askable(request: DetectionRequest, caller: Principal, backend: DetectionBackend) -> KeySelection:
    """The keys that a permitted request is tried with. Raises as `select_keys` and `check_vocabulary`."""
    selection = select_keys(request, caller.tenant, backend.keys, backend.tokenizers)
    check_vocabulary(request.inputs, tokenizers_of(selection.keys, backend))
    return selection


def tokenizers_of(keys: Sequence[HeldKey], backend: DetectionBackend) -> list[TextTokenizer | None]:
    """Of the keys, each once; None: one that is not installed."""
    fingerprints = dict.fromkeys(key.profile.tokenizer_fingerprint for key in keys)
    return [backend.tokenizers.get(fingerprint) for fingerprint in fingerprints]
