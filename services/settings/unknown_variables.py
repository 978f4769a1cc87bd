"""The names of all variables `TTMARK_*`: one that nobody reads is a mistake, and ends the start."""

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

from ttmark.services.settings.base import PREFIX, Settings, WrongSettings, variable
from ttmark.services.settings.canary import CanarySettings
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.dropped_settings import DROPPED, check_dropped
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.startup import StartupError, warn

ALL: tuple[type[Settings], ...] = (GenerationSettings, DetectionSettings, KeyStoreSettings, CanarySettings)

# What others than our commands read: Compose, the Makefile, the tests.
OF_OTHERS = frozenset(
    {
        "TTMARK_GEN_CPUS",
        "TTMARK_GEN_MEMORY",
        "TTMARK_GPUS",
        "TTMARK_METRICS_RETENTION",
        "TTMARK_MODELS",
        "TTMARK_PROMETHEUS_URL",
        "TTMARK_VERSION",
        "TTMARK_TORCH_INDEX",
        "TTMARK_OCR_PACKAGES",
        "TTMARK_FAULTS",
        "TTMARK_RESULTS",
        "TTMARK_TEST_MODEL",
        "TTMARK_TEST_REDIS_SERVER",
    }
)
FORMER = {
    "TTMARK_AUDIT_FILE": "TTMARK_AUDIT_FOLDER, which names a folder",
    "TTMARK_VARIANTS_PER_DOCUMENT": "TTMARK_ANSWERS_PER_PASSAGE",
}
"""Settings that there were, and what to set instead."""

# What Kubernetes sets in every pod for a Service whose name begins with `ttmark`.
_SERVICE_LINK = re.compile(
    r"TTMARK(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_PORT = re.compile(r"TTMARK(_\w+)?_PORT")
_SERVICE_URL = re.compile(r"(tcp|udp|sctp)://")


def known_names() -> frozenset[str]:
    return OF_OTHERS | {variable(field) for settings in ALL for field in settings.model_fields}


def check_names(environment: Mapping[str, str]) -> None:
    """Does nothing where every variable `TTMARK_*` is one that somebody reads; warns of dropped ones.

    Raises:
        StartupError: one is not, and the line names it and the nearest that is; or a dropped one has another
            value than the constant that took its place.
    """
    known = known_names()
    ours = {name.upper(): (name, value) for name, value in environment.items()}
    unread = {
        capitals: name
        for capitals, (name, value) in ours.items()
        if capitals.startswith(PREFIX) and capitals not in known and not _is_service_link(name, value)
    }
    if unknown := sorted(name for capitals, name in unread.items() if capitals not in DROPPED):
        raise StartupError("; ".join(_said(name, known) for name in unknown))
    check_dropped(unread, {capitals: value for capitals, (_, value) in ours.items()}, warn)


def check_settings(given: Collection[str]) -> None:
    """Reads the settings of both services and of their key store.

    Args:
        given: variables that they will have another value of.

    Raises:
        WrongSettings: values of others are none.
    """
    for settings in (GenerationSettings, DetectionSettings, KeyStoreSettings):
        try:
            settings()
        except WrongSettings as wrong:
            problems = {name: reason for name, reason in wrong.problems.items() if name not in given}
            if problems:
                raise WrongSettings(problems) from None


def _is_service_link(name: str, value: str) -> bool:
    address = _SERVICE_PORT.fullmatch(name) and _SERVICE_URL.match(value)
    return bool(address or _SERVICE_LINK.fullmatch(name))


def _said(name: str, known: Iterable[str]) -> str:
    if name in FORMER:
        return f"{name} is not read any more: set {FORMER[name]}"
    (nearest,) = get_close_matches(name.upper(), sorted(known), n=1, cutoff=0)
    return f"{name} is no setting: did you mean {nearest}?"
