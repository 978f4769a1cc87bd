"""Whether a caller may ask as a request does."""

from collections.abc import Sequence

from ttmark.shared.access.scopes import Principal
from ttmark.shared.access.token_limits import allowed_rate
from ttmark.shared.http.service_errors import Unprocessable
from ttmark.shared.schemas.detection import (
    DEFAULT_BETA,
    DEFAULT_FPR,
    AlignedRequest,
    CombinedRequest,
    DetectionRequest,
    Document,
)
from ttmark.shared.tokenization import TextTokenizer


def permitted(request: DetectionRequest, caller: Principal) -> DetectionRequest:
    """The request as `caller` may ask it: without evidence at one of its rates, with the default beta.

    Raises:
        Unprocessable: naming the rates, the beta or the reader that is allowed.
    """
    if caller.sees_evidence:
        return request
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
