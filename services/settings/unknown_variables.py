"""The names of all variables `TTMARK_*`: one that nobody reads is a mistake, and ends the start."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from ttmark.services.settings.base import PREFIX, Settings, WrongSettings, variable
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.startup import StartupError, warn
from ttmark.shared.features import modules_of

ALL: tuple[type[Settings], ...] = (GenerationSettings, DetectionSettings, KeyStoreSettings)


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
    read = (*ALL, *of_features())
    return OF_OTHERS | {variable(field) for settings in read for field in settings.model_fields}


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
    services = ("ttmark.gen_service.features", "ttmark.detect_service.features")
    listeners = modules_of("events", "ttmark.services.features")
    for check in (*ALL, *of_features(*services), *(listener.check for listener in listeners)):
        try:
            check()
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


_PAGE = "docs/operations/upgrade.md"
_TRUE, _FALSE = ("1", "on", "t", "true", "y", "yes"), ("0", "off", "f", "false", "n", "no")

Given = Mapping[str, str]
"""Variables by name in capitals; an empty one is left out."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is the same everywhere now.

    Attributes:
        value: as a variable would have it; a function where it follows from another setting.
        why: this one, or what to do who needs another; in a few words.
    """

    value: str | Callable[[Given], str]
    why: str

    def now(self, given: Given) -> str:
        return self.value if isinstance(self.value, str) else self.value(given)


@dataclass(frozen=True, slots=True)
class Gone:
    """A feature that there is no more.

    Attributes:
        why: what took its place, in a few words.
        switches_on: whether another value than 0 was what people had the feature by.
    """

    why: str
    switches_on: bool = False


def _times(factor: float, name: str, default: int) -> Callable[[Given], str]:
    """A share of another setting; of its default where that is no number, which ends the start by itself."""

    def share(given: Given) -> str:
        try:
            return f"{factor * float(given.get(name, default)):.0f}"
        except ValueError:
            return f"{factor * default:.0f}"

    return share


def _tenant_bytes(given: Given) -> str:
    """Half of all jobs'; more was never taken, whatever was set."""
    half = _times(0.5, "TTMARK_JOBS_BYTES", 2**26)(given)
    own = given.get("TTMARK_JOBS_TENANT_BYTES", half)
    return own if own.isdecimal() and int(own) > int(half) else half


def _reader(given: Given) -> str:
    return "vllm" if "TTMARK_READER_TOKENIZER" in given else "ttmark"


_WORDS = "TTMARK_PUBLIC_WORDS_PER_DAY"
_JOB = "make several jobs, or use `ttmark detect --bulk`"
_SLOW = "a slow sender holds a connection, and nothing else"
_ANSWERS = "ten answers are enough to remove a mark"
_AS_TENANTS = "as many as tokens of a tenant get"
_CANARY = "rules for alerts go by it"
_FILES = "save larger files as text, or in parts"
_QUEUE = "there is no team queue: tickets have signed cases"
_CASES = "no cases are kept: they are files of yours"

DROPPED: Mapping[str, Constant | Gone] = {
    "TTMARK_EXTRACT_QUEUE": Constant("16", "the last of them waits 40 s for two processes"),
    "TTMARK_EXTRACT_CPU_SECONDS": Constant("5", _FILES),
    "TTMARK_EXTRACT_SECONDS": Constant("30", _FILES),
    "TTMARK_EXTRACT_MEMORY_BYTES": Constant("536870912", _FILES),
    "TTMARK_EXTRACT_TEXT_BYTES": Constant("16777216", _FILES),
    "TTMARK_JOB_DOCUMENTS": Constant("10000", _JOB),
    "TTMARK_JOB_BYTES": Constant("16777216", _JOB),
    "TTMARK_JOB_KEEP_SECONDS": Constant("86400", "delete a job whose results are to go sooner"),
    "TTMARK_JOB_LEASE_SECONDS": Constant("30", "a job loses nothing by it"),
    "TTMARK_JOBS_PER_TENANT": Constant("16", _JOB),
    "TTMARK_JOBS_TENANT_BYTES": Constant(_tenant_bytes, "half of `TTMARK_JOBS_BYTES`: others have room"),
    "TTMARK_PUBLIC_CHARACTERS": Constant("20000", "longer texts are asked about in parts"),
    "TTMARK_PUBLIC_TENANT_WORDS_PER_DAY": Constant(_times(3, _WORDS, 100_000), f"three times `{_WORDS}`"),
    "TTMARK_PUBLIC_ADDRESS_WORDS_PER_DAY": Constant(_times(0.1, _WORDS, 100_000), f"a tenth of `{_WORDS}`"),
    "TTMARK_PUBLIC_ADDRESS_REQUESTS_PER_MINUTE": Constant("20", "who asks more takes a token"),
    "TTMARK_PUBLIC_ANSWERS": Constant("12", _AS_TENANTS),
    "TTMARK_PUBLIC_ANSWERS_PER_ASKER": Constant("4", _ANSWERS),
    "TTMARK_ANSWERS_WINDOW_SECONDS": Constant("86400", "as long as people work on a text"),
    "TTMARK_PUBLIC_VARIANTS": Constant("12", _AS_TENANTS),
    "TTMARK_PUBLIC_VARIANTS_PER_ASKER": Constant("4", _ANSWERS),
    "TTMARK_VARIANTS_PAUSE_SECONDS": Constant("86400", "as long as people work on a text"),
    "TTMARK_VARIANTS_WINDOW_SECONDS": Constant("86400", "as long as people work on a text"),
    "TTMARK_DOCUMENTS_PER_MINUTE": Constant("600000", "`ttmark tokens create --documents-per-minute`"),
    "TTMARK_KEY_REFRESH_SECONDS": Constant("15", "a rotation waits for so long"),
    "TTMARK_TOKEN_REFRESH_SECONDS": Constant("2", "a revocation waits for so long"),
    "TTMARK_HEADER_SECONDS": Constant("10", _SLOW),
    "TTMARK_BODY_SECONDS": Constant("30", _SLOW),
    "TTMARK_MAX_CONNECTIONS": Constant("4096", "lower if fewer files may be open (`ulimit -n`)"),
    "TTMARK_READER_KIND": Constant(_reader, "a vLLM server is a reader with `TTMARK_READER_TOKENIZER`"),
    "TTMARK_READING_SHARE": Constant("0.2", "start a generation service for reading alone"),
    "TTMARK_PREFIX_CACHE": Constant("true", "it changes no text, and yields to whatever needs its room"),
    "TTMARK_ADAPTIVE_BRANCHES": Constant("false", "lower `TTMARK_MAX_BRANCHES`"),
    "TTMARK_CANARY_SECONDS": Constant("60", _CANARY),
    "TTMARK_CANARY_TOKENS": Constant("300", _CANARY),
    "TTMARK_CANARY_FPR": Constant("0.0001", _CANARY),
    "TTMARK_CASES_KEEP_DAYS": Gone(_CASES, switches_on=True),
    "TTMARK_CASE_BYTES": Gone(_CASES),
    "TTMARK_CASES_BYTES": Gone(_CASES),
    "TTMARK_CASES_TENANT_BYTES": Gone(_CASES),
    "TTMARK_QUEUE_KEEP_DAYS": Gone(_QUEUE, switches_on=True),
    "TTMARK_QUEUE_ITEMS": Gone(_QUEUE),
}


def check_dropped(names: Iterable[str], given: Given, warn: Callable[[str], None]) -> None:
    """Tells of dropped settings.

    Args:
        names: dropped settings that are given, in capitals.
        given: all variables; constants may follow from some.
        warn: hears each line about what stops nothing.

    Raises:
        StartupError: one has another value than what took its place.
    """
    given = {name: value.strip() for name, value in given.items() if value.strip()}
    idle, gone, wishes = [], [], []
    for name in sorted(given.keys() & set(names)):
        match DROPPED[name]:
            case Constant() as constant if not _same(given[name], constant.now(given)):
                wishes.append(f"{name} is a constant now, {constant.now(given)}: remove it ({constant.why})")
            case Gone(why, switches_on) if switches_on and not _same(given[name], "0"):
                gone.append(f"{name} is not read any more: {why}")
            case _:
                idle.append(name)
    if wishes:
        raise StartupError("; ".join(wishes))
    for line in gone:
        warn(line)
    if idle:
        warn(f"not read any more, which changes nothing ({_PAGE}): {', '.join(idle)}")


def _same(one: str, other: str) -> bool:
    """Whether a setting took the two for the same: a number, a truth value, or a word."""
    try:
        return float(one) == float(other)
    except ValueError:
        pair = {one.lower(), other.lower()}
        return len(pair) == 1 or any(pair <= {*words} for words in (_TRUE, _FALSE))
