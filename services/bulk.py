"""Composition root of bulk runs: opens keys and tokenizers in each worker process."""

import asyncio
from dataclasses import dataclass

from detect_service.backend import DetectionBackend
from detect_service.bulk import BulkOptions, Examiner
from detect_service.bulk.fixed_keys import FixedKeys
from detect_service.tokenizers import TokenizerSet
from gen_service.demo_model import DEMO_MODEL_PATH
from services.runtime import StartupError
from services.settings import DetectionSettings
from services.settings_keys import KeyStoreSettings
from shared.keys import KeyRing, KeyStoreError
from shared.tokenization import TokenizerMissing


@dataclass(frozen=True)
class OpenExaminer:
    """Makes an examiner from the settings of the process that calls it."""

    tenant: str
    options: BulkOptions

    def __call__(self) -> Examiner:
        """Opens keys and tokenizers.

        Raises:
            StartupError: the key store or a tokenizer is not usable.
        """
        return Examiner(open_backend(read_keys()), self.tenant, self.options)


def read_keys() -> FixedKeys:
    """All keys of the configured store, as they are now.

    Raises:
        StartupError: the store is away, or a key does not open.
    """
    settings = KeyStoreSettings()
    kek = settings.load_kek()

    async def read() -> FixedKeys:
        store = settings.open_store()
        try:
            keys, problems = await KeyRing(store, kek).open_all()
        finally:
            await store.close()
        for problem in problems.values():
            raise problem
        return FixedKeys.of(keys.values())

    try:
        return asyncio.run(read())
    except KeyStoreError as error:
        raise StartupError(str(error)) from error


def open_backend(keys: FixedKeys) -> DetectionBackend:
    """What the detection service works with, over fixed keys.

    Raises:
        StartupError: a tokenizer is missing.
    """
    settings = DetectionSettings()
    try:
        tokenizers = TokenizerSet.load(settings.tokenizers or [DEMO_MODEL_PATH])
    except TokenizerMissing as error:
        raise StartupError(str(error)) from error
    return DetectionBackend(keys, tokenizers, settings.max_document_tokens)


def only_tenant(keys: FixedKeys, tenant: str | None) -> str:
    """The tenant whose keys are tried: the given one, or the only one that there is.

    Raises:
        StartupError: there is none, or which one is not clear.
    """
    tenants = sorted({key.tenant for key in keys.keys})
    if tenant is not None and tenant in tenants:
        return tenant
    if tenant is not None:
        raise StartupError(f"tenant {tenant} has no keys")
    if len(tenants) != 1:
        named = ", ".join(tenants) or "none"
        raise StartupError(f"say which tenant's keys to try with --tenant (there are: {named})")
    return tenants[0]
