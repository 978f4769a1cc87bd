"""Composition root of detection over files: keys and tokenizers in each worker process."""

import asyncio
from itertools import islice
from pathlib import Path

from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.detect_service.features.bulk.examiner import Examiner
from ttmark.detect_service.features.bulk.input_formats import open_source
from ttmark.detect_service.features.manifests.settings import TrustSettings
from ttmark.detect_service.key_selection import select_keys
from ttmark.detect_service.options import DetectionOptions
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.startup import StartupError, no_start_after
from ttmark.shared.http.service_errors import ServiceError
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.observability.logging import configure_logging
from ttmark.shared.schemas.detection.detect import Document
from ttmark.shared.tokenization import TokenizerMissing
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError

_ROWS_LOOKED_AT = 100


def open_examiner(tenant: str, options: DetectionOptions) -> Examiner:
    """Opens keys and tokenizers by this process's settings. Raises StartupError: one is not usable."""
    configure_logging("error")
    return Examiner(open_backend(read_keys()), tenant, options, TrustSettings().load_label())


def read_keys(settings: KeyStoreSettings | None = None) -> FixedKeys:
    """All keys of a store, or the configured one. Raises StartupError: it is away, or one does not open."""
    settings = settings or KeyStoreSettings()
    kek, ledger = settings.load_kek(), settings.open_ledger()

    async def read() -> FixedKeys:
        store = settings.open_store()
        try:
            keys, problems = await KeyRing(store, kek, ledger=ledger).open_all()
        finally:
            await store.close()
        for problem in problems.values():
            raise problem
        return FixedKeys.of(keys.values())

    with no_start_after(KeyStoreError):
        return asyncio.run(read())


def open_backend(keys: FixedKeys) -> DetectionBackend:
    """What the detection service works with, over fixed keys. Raises StartupError: a tokenizer is missing."""
    settings = DetectionSettings()
    with no_start_after(TokenizerMissing):
        tokenizers = TokenizerSet.load(settings.tokenizer_folders())
    return DetectionBackend(keys, tokenizers, settings.max_document_tokens)


def check_keys(source: Path, options: DetectionOptions, tenant: str, backend: DetectionBackend) -> None:
    """Holds the keys of a run against its first rows, so that it fails at its start and not row by row.

    Raises:
        StartupError: a named key is not the tenant's, or texts are to be read and the tokenizer of a named
            key, or of every key, is not installed.
        BulkError: the rows cannot be read.
    """
    first = [row.parse()[1] for row in islice(open_source(source).rows(0), _ROWS_LOOKED_AT)]
    has_texts = any(isinstance(document, Document) and document.text is not None for document in first)
    like_them = Document(text="") if has_texts else Document(token_ids=[])
    with no_start_after(ServiceError):
        select_keys(options.request([like_them]), tenant, backend.keys, backend.tokenizers)


def only_tenant(keys: FixedKeys, tenant: str | None) -> str:
    """The tenant whose keys are tried: given, or the only one. Raises StartupError: it is not clear which."""
    tenants = sorted({key.tenant for key in keys.keys})
    if tenant is not None and tenant in tenants:
        return tenant
    if tenant is not None:
        raise StartupError(f"tenant {tenant} has no keys")
    if len(tenants) != 1:
        named = ", ".join(tenants) or "none"
        raise StartupError(f"say which tenant's keys to try with --tenant (there are: {named})")
    return tenants[0]
