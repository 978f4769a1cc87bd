"""What a request asks, before it is answered: whether its caller may ask so, and what it asks about."""

from collections.abc import Sequence

import numpy as np
import orjson

from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.failures import is_fault, log_fault
from ttmark.detect_service.key_selection import select_keys
from ttmark.detect_service.letters import letters_of
from ttmark.shared.access.rates import allowed_rate
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.service_errors import Unprocessable
from ttmark.shared.keys.unlocked import HeldKey
from ttmark.shared.limits.allowances import AskedDocuments
from ttmark.shared.limits.near_duplicates import Content
from ttmark.shared.schemas.detection import (
    DEFAULT_BETA,
    DEFAULT_FPR,
    AlignedRequest,
    DetectionRequest,
    Document,
)
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.pauses import pause

_NO_IDS = np.zeros(0, dtype=np.int64)


def permitted(request: DetectionRequest, caller: Principal) -> DetectionRequest:
    """The request as `caller` may ask it: without evidence at one of its rates, with the default beta.

    Raises:
        Unprocessable: naming the rates, or the beta, that are allowed.
    """
    if caller.sees_evidence:
        return request
    if isinstance(request, AlignedRequest) and request.beta != DEFAULT_BETA:
        raise Unprocessable(
            f"Without the scope detect:evidence beta is {DEFAULT_BETA:g}; leave it out.", param="beta"
        )
    wanted = request.fpr if "fpr" in request.model_fields_set else None
    rate = allowed_rate(wanted, DEFAULT_FPR, caller.rates)
    if rate is None:
        allowed = " or ".join(f"{one:g}" for one in caller.rates)
        raise Unprocessable(
            f"Without the scope detect:evidence this access token asks at an fpr of {allowed}.",
            param="fpr",
        )
    return request.model_copy(update={"fpr": rate})


def asked(
    request: DetectionRequest, mode: str, caller: Principal, backend: DetectionBackend
) -> AskedDocuments:
    """The documents of a permitted request, for its caller's allowance.

    Raises:
        KeyNotFound, Unprocessable: as `select_keys`; or a token id is outside the vocabulary.
    """
    keys = select_keys(request, caller.tenant, backend.keys, backend.tokenizers).keys
    check_vocabulary(request.inputs, _tokenizers(keys, backend))
    options = {
        "mode": mode,
        "versions": [[key.key_id, *(version.version for version in key.detectable)] for key in keys],
        **request.model_dump(mode="json", exclude={"inputs", "keys", "case"}),
    }
    prefix = orjson.dumps(options, option=orjson.OPT_SORT_KEYS)
    # Whatever keys a request names, token ids are read as all keys of the tenant read them: another choice of
    # keys must not make another document of them.
    readers = _tokenizers(backend.keys.for_tenant(caller.tenant), backend)
    return AskedDocuments(
        count=len(request.inputs),
        rate=request.fpr,
        size=sum(len(document.text or document.token_ids or ()) for document in request.inputs),
        read=lambda: [_content(document, prefix, readers, backend) for document in request.inputs],
    )


def check_vocabulary(documents: Sequence[Document], tokenizers: Sequence[TextTokenizer | None]) -> None:
    """Refuses token ids that no tokenizer of the keys gives, where all are known.

    Raises:
        Unprocessable: naming the document and the bound.
    """
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


def _tokenizers(keys: Sequence[HeldKey], backend: DetectionBackend) -> list[TextTokenizer | None]:
    fingerprints = dict.fromkeys(key.profile.tokenizer_fingerprint for key in keys)
    return [backend.tokenizers.get(fingerprint) for fingerprint in fingerprints]


def _content(
    document: Document, prefix: bytes, readers: Sequence[TextTokenizer | None], backend: DetectionBackend
) -> Content:
    pause()
    text, ids = document.text, np.array(document.token_ids or (), dtype=np.int64)
    known = [] if text is not None else [reader for reader in readers if reader is not None]
    try:
        texts = [reader.decode(ids[ids < reader.id_bound].tolist()) for reader in known]
        letters = "".join(
            letters_of(one, lambda odd: backend.normalizer.normalize(odd).text)
            for one in (texts if text is None else [text])
        )
    except BaseException as error:
        if not is_fault(error):
            raise
        log_fault(error)
        letters = "".join((text or "").split())  # as it stands: a fault is no way around the throttle
    if text is not None:
        return Content(b"%b text %b" % (prefix, text.encode()), letters, _NO_IDS)
    unknown = not letters or len(known) < len(readers)
    return Content(b"%b ids %b" % (prefix, ids.tobytes()), letters, ids if unknown else _NO_IDS)
