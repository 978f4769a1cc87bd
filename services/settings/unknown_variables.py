"""The names of all variables `TTMARK_*`: one that nobody reads is a mistake, and ends the start."""

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

from ttmark.services.settings.base import PREFIX, Settings, WrongSettings, variable
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.startup import StartupError
from ttmark.shared.features import modules_of

FEATURES: Mapping[type[Settings], str] = {
    GenerationSettings: "ttmark.gen_service.features",
    DetectionSettings: "ttmark.detect_service.features",
}
ALL: tuple[type[Settings], ...] = (*FEATURES, KeyStoreSettings)


def of_features(*folders: str) -> list[type[Settings]]:
    """The settings of features: by default of all, else of those in these packages."""
    return [
        kind
        for module in modules_of("settings", *folders)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Settings) and kind.__module__ == module.__name__
    ]


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
# What Kubernetes sets in every pod for a Service whose name begins with `ttmark`.
_SERVICE_LINK = re.compile(
    r"TTMARK(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_PORT = re.compile(r"TTMARK(_\w+)?_PORT")
_SERVICE_URL = re.compile(r"(tcp|udp|sctp)://")


def known_names() -> frozenset[str]:
    read = (*ALL, *of_features())
    return OF_OTHERS | {variable(field) for settings in read for field in settings.model_fields}


def check_names(environment: Mapping[str, str]) -> None:
    """Does nothing where every variable `TTMARK_*` is one that somebody reads.

    Raises:
        StartupError: one is not, and the line names it and the nearest that is.
    """
    known = known_names()
    unknown = sorted(
        name
        for name, value in environment.items()
        if (capitals := name.upper()).startswith(PREFIX)
        and capitals not in known
        and not _is_service_link(name, value)
    )
    if unknown:
        raise StartupError("; ".join(_said(name, known) for name in unknown))


def check_settings(*services: type[Settings], given: Collection[str] = ()) -> None:
    """Reads the settings of services, of their features and of their key store.

    Args:
        given: variables that they will have another value of.

    Raises:
        WrongSettings: values of others are none; all that are wrong are named at once.
    """
    features = of_features(*(FEATURES[service] for service in services))
    listeners = modules_of("events", "ttmark.services.features")
    problems: dict[str, str] = {}
    for read in (*services, KeyStoreSettings, *features, *(listener.check for listener in listeners)):
        try:
            read()
        except WrongSettings as wrong:
            problems |= {name: reason for name, reason in wrong.problems.items() if name not in given}
    if problems:
        raise WrongSettings(problems)


def _is_service_link(name: str, value: str) -> bool:
    address = _SERVICE_PORT.fullmatch(name) and _SERVICE_URL.match(value)
    return bool(address or _SERVICE_LINK.fullmatch(name))


def _said(name: str, known: Iterable[str]) -> str:
    (nearest,) = get_close_matches(name.upper(), sorted(known), n=1, cutoff=0)
    return f"{name} is no setting: did you mean {nearest}?"
