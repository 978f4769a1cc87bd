"""Composition root of cases that are kept."""

from pathlib import Path

from ttmark.detect_service.cases.case_store import CaseRoom, CaseStore
from ttmark.detect_service.cases.desk import KeptCases
from ttmark.services.key_access import KeyAccess
from ttmark.services.place_beside import place_beside
from ttmark.services.runtime import StartupError, no_start_after
from ttmark.services.settings.cases_and_jobs import CaseSettings
from ttmark.services.settings.store import KeyStoreSettings


def open_case_store(url: str) -> CaseStore:
    """Cases beside the key store that a URL names; nothing is connected to before the first call.

    Raises:
        ValueError: the URL names no store.
    """
    place = place_beside(url, "cases.db")
    if isinstance(place, Path):
        from ttmark.detect_service.cases.sqlite_cases import SqliteCases

        return SqliteCases(place)
    from ttmark.detect_service.cases.redis_cases import RedisCases

    return RedisCases(place)


def open_kept_cases(settings: CaseSettings, access: KeyAccess) -> KeptCases | None:
    """Where cases are kept, if they are to be.

    Raises:
        StartupError: the key store's URL is not usable, or nothing signs cases.
    """
    if not settings.cases_keep_days:
        return None
    if settings.case_key_file is None:
        raise StartupError("TTMARK_CASES_KEEP_DAYS needs TTMARK_CASE_KEY_FILE: only signed cases are kept")
    with no_start_after(ValueError):
        store = open_case_store(KeyStoreSettings().url())
    room = CaseRoom(settings.cases_tenant_bytes, settings.cases_bytes)
    return KeptCases(store, access.kek, settings.cases_keep_days, room, settings.case_bytes)
