"""Counts the documents of callers who see verdicts alone, before they are scored."""

import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import orjson

from ttmark.detect_service.documents.document_limits import read_document
from ttmark.detect_service.documents.documents_without_verdict import is_fault
from ttmark.detect_service.examination import Examination
from ttmark.detect_service.features.spent.document_rows import DocumentRows
from ttmark.detect_service.features.spent.spent_document import Counted, Memory, SpentDocument, scope_of
from ttmark.detect_service.features.spent.spent_evidence import AnswerLedger, AskedRows, Standing
from ttmark.detect_service.key_selection import tokenizers_of
from ttmark.shared.access.scopes import Principal
from ttmark.shared.limits.counting_filter import Reason, Refusal
from ttmark.shared.schemas.detection.detect import (
    CombinedRequest,
    DirectRequest,
    DocumentError,
)
from ttmark.shared.schemas.generation.origin import Origin
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.interruption import pause

# Token ids of which so few are no text to judge by.
_SHORT = 32
_NO_SEED = bytes(16)
_NOT_DECODED = "\ufffd"
_BYTES_AS_ONE = 3  # bytes of no character that show as one of these at most
_NO_ROWS = DocumentRows((), (), 0)

Run = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Does long work off the event loop."""


@dataclass(frozen=True, slots=True)
class Spending:
    """Asks a ledger about documents; `refused` is told why some got no verdict, `name` replaces the mode."""

    ledger: AnswerLedger
    refused: Callable[[Principal, Sequence[Reason]], None]
    name: str | None = None

    async def ask(
        self,
        examination: Examination,
        caller: Principal,
        run: Run,
        asker: str = "",
    ) -> Counted:
        """The documents of a question; `run` reads long ones off the event loop.

        Args:
            asker: who asks, where each asker has a limit of its own.

        Raises:
            TooLarge: a document is too long.
        """
        request, selection = examination.request, examination.selection
        tokenizers = tokenizers_of(selection.keys, examination.backend)
        options = {
            "mode": self.name or request.mode,
            **request.model_dump(
                mode="json", exclude={"inputs", "keys", "case", "fpr", *Origin.model_fields}
            ),
        }
        same = orjson.dumps(options, option=orjson.OPT_SORT_KEYS)
        # A version is what its PRF keys are: a number may come again with others.
        versions = {
            (key.key_id, version.version): self.ledger.hash(b"version", b"".join(version.prf_keys))
            for key, version in selection.tries
        }
        others = sorted([key.key_id, *selection.numbers[key.key_id]] for key in selection.foreign)
        named = b"%b %b %b" % (same, b"".join(sorted(versions.values())), orjson.dumps(others))

        told: list[Memory] = []

        def read() -> list[SpentDocument]:
            return [self._read(index, examination, tokenizers, told) for index in range(len(request.inputs))]

        documents = await run(read)
        counted = [one for one in documents if one.counts]
        if isinstance(request, CombinedRequest) and request.conversation:
            # An answer about all together is another one with each other message beside.
            named += hashlib.blake2b(orjson.dumps([one.exact.hex() for one in documents])).digest()
        rows = [AskedRows(b"%b %r %b" % (named, request.fpr, one.exact), one.rows.names) for one in counted]
        standings = iter(await self.ledger.ask(caller, rows, rate=request.fpr, asker=asker))
        scopes = {
            kind: {name: scope_of(same + version + kind) for name, version in versions.items()}
            for kind in (b"ids", b"text")
        }
        asked = []
        for document, one in zip(request.inputs, documents, strict=True):
            kind = b"ids" if document.text is None else b"text"
            standing = next(standings) if one.counts else one.standing
            asked.append(replace(one, scope=scope_of(named + kind), scopes=scopes[kind], standing=standing))
        return Counted(asked, self.ledger.rule, told)

    async def close(self, caller: Principal, counted: Counted, asker: str = "") -> None:
        """Keeps what was said of passages whose rows are about to be spent; every answer is made by now."""
        self.refused(caller, counted.reasons)
        if counted.memories:
            memories = [memory.packed() for memory in counted.memories]
            await self.ledger.remember(caller, memories, asker=asker)

    def _read(
        self,
        index: int,
        examination: Examination,
        tokenizers: Sequence[TextTokenizer | None],
        told: Sequence[Memory],
    ) -> SpentDocument:
        """Document number `index` before the ledger is asked about it."""
        pause()
        request, keys = examination.request, examination.selection.keys
        document = request.inputs[index]
        made = partial(
            SpentDocument,
            rate=request.fpr,
            is_searched=not isinstance(request, DirectRequest) or request.phase_of(document) == "any",
            told=told,
        )
        try:
            found = read_document(request, index, examination.readers[index], keys, examination.backend)
            if isinstance(found, DocumentError):
                return made(_NO_ROWS, _uncounted(_NO_ROWS), unread=found)
            rows = DocumentRows(found, keys, self.ledger.row_seed)
            if document.text is not None:
                return made(rows, _uncounted(rows), exact=b"text " + document.text.encode())
            ids = document.token_ids or []
            known = [one for one in tokenizers if one is not None]
            spelled = [(one, one.decode(ids)) for one in known]
            is_carrier = bool(known) and all(_is_carrier(one, ids, text) for one, text in spelled)
            return made(
                rows,
                _uncounted(rows, Refusal("carrier") if is_carrier else None),
                exact=b"ids " + np.array(ids, dtype=np.int64).tobytes(),
                reads_back=any(one.encode(text) == ids for one, text in spelled) if known else None,
            )
        except BaseException as error:
            if not is_fault(error):
                raise
            return made(_NO_ROWS, _uncounted(_NO_ROWS), unread=error)


def _uncounted(rows: DocumentRows, refusal: Refusal | None = None) -> Standing:
    """Of a document that the ledger was not asked about: nothing of it is spent."""
    return Standing(_NO_SEED, np.zeros(rows.names.size, dtype=np.uint8), refusal)


def _is_carrier(tokenizer: TextTokenizer, ids: Sequence[int], text: str) -> bool:
    """Whether most token ids are special tokens, bytes of no character, or one of them over and over."""
    if len(ids) < _SHORT:
        return False
    counts = Counter(ids)
    special = sum(counts[one] for one in tokenizer.special_ids)
    parts = sum(count for one, count in counts.items() if _NOT_DECODED in tokenizer.decode([one]))
    astray = min(parts, _BYTES_AS_ONE * text.count(_NOT_DECODED))
    return 2 * max(special + astray, *counts.values()) > len(ids)
