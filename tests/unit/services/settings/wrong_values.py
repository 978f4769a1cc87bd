"""Every setting with every wrong kind of value, and the few of them that mean something."""

from pathlib import Path

from tests.harness.reference.settings_table import READERS
from ttmark.services.settings.base import Settings
from ttmark.services.startup import StartupError

CLASSES = sorted({cls for classes in READERS.values() for cls in classes}, key=lambda cls: cls.__name__)
SECRET = "hunter2"

FREE_TEXT = frozenset({"text", "negative", "vast", "infinite", "nan", "unit", "missing", "folder"})
NAMES = frozenset({"vast", "infinite", "nan", "unit"})
LEGAL: dict[str, frozenset[str]] = {
    # Words that nobody but the operator judges.
    "TTMARK_AIGC_PRODUCER": FREE_TEXT,
    "TTMARK_LABEL": FREE_TEXT,
    "TTMARK_READER_MODEL": FREE_TEXT | {"huge"},
    "TTMARK_REPLICA_ID": FREE_TEXT,
    "TTMARK_OIDC_AUDIENCE": FREE_TEXT | {"huge"},
    "TTMARK_OIDC_CLIENT_ID": FREE_TEXT | {"huge"},
    "TTMARK_OIDC_EVIDENCE_GROUP": FREE_TEXT | {"huge"},
    # Tokens of other systems look as they like.
    "TTMARK_READER_TOKEN": FREE_TEXT | {"huge"},
    # Without the file nothing is read along, until an operator puts a token there.
    "TTMARK_READER_TOKEN_FILE": FREE_TEXT | {"huge"},
    # Hosts may be called so; where there is none, listening or calling says it.
    "TTMARK_HOST": NAMES,
    "TTMARK_WEBHOOK_HOSTS": NAMES,
    "TTMARK_OIDC_TENANT": NAMES - {"unit"},
    # Keys may be called so; /readyz says that there is none.
    "TTMARK_DEFAULT_KEY": frozenset({"vast", "infinite", "nan"}),
    # A file that is made when it is needed, in the folder where the process runs.
    "TTMARK_LEDGER_FILE": NAMES | {"text", "negative"},
    "TTMARK_AUDIT_FOLDER": frozenset({"folder"}),
    "TTMARK_STATE": frozenset({"folder"}),
}
LEGAL_IN = {
    ("GenerationSettings", "TTMARK_MODEL"): frozenset({"folder"}),
    # The service is asked for it, and says what it has.
    ("CanarySettings", "TTMARK_MODEL"): FREE_TEXT | {"huge"},
}
"""The wrong kinds that mean something to a setting. Empty means the same to all: it is left out."""

SAYS_THE_FOLDER = frozenset({"TTMARK_STATE", "TTMARK_AUDIT_FOLDER", "TTMARK_LEDGER_FILE"})
"""Settings whose line has the value, because it says `mkdir` what."""


def wrong_values(folder: Path) -> dict[str, str]:
    """A value of each kind. Those that are texts hold a secret, which nobody may repeat."""
    return {
        "empty": "",
        "text": f"no {SECRET}!",
        "negative": "-1",
        "huge": "9" * 400,
        "vast": "1e300",
        "infinite": "1e400",
        "nan": "nan",
        "unit": "8MB",
        "missing": str(folder / "nowhere" / SECRET),
        "folder": str(folder),
    }


def is_legal(cls: type[Settings], name: str, kind: str) -> bool:
    """Whether a kind means something to a setting."""
    return kind == "empty" or kind in LEGAL_IN.get((cls.__name__, name), LEGAL.get(name, frozenset()))


def outcome(cls: type[Settings]) -> tuple[str, str]:
    """How reading the settings from the environment ends, `refused` for one, and what is said."""
    try:
        cls()
    except StartupError as error:
        return "refused", str(error)
    except Exception as error:  # what a user would see as a traceback
        return "traceback", f"{type(error).__name__}: {error}"
    return "accepted", ""
