"""The signed report of attacks: figures, quality, and what they are of; no text and no secret."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ttmark.evaluation.conformance.attacks import Row
from ttmark.evaluation.conformance.report import as_read, made_by
from ttmark.evaluation.conformance.unmarked_texts import TextSet
from ttmark.shared.cases.signed_file import ATTACKS_FORMAT


@dataclass(frozen=True, slots=True)
class Attacked:
    """What was attacked and with what.

    Attributes:
        subject: the mark, for readers.
        detector: what was asked.
        tools: models and lists that attacks and measures used.
        left_out: attacks that were not run, and why.
    """

    subject: str
    texts: TextSet
    detector: Mapping[str, Any]
    tools: Mapping[str, str]
    left_out: Sequence[str]


def attacks_report(
    attacked: Attacked, rows: Sequence[Row], *, seed: int, command: str, seconds: float, signing_key: str
) -> dict[str, Any]:
    """The document that is signed."""
    texts = attacked.texts
    report = {
        "format": ATTACKS_FORMAT,
        **made_by(command, seconds, signing_key),
        "seed": seed,
        "subject": attacked.subject,
        "texts": {"texts": len(texts.texts), "origin": texts.origin, "sha256": texts.sha256},
        "detector": dict(attacked.detector),
        "tools": dict(attacked.tools),
        "left_out": list(attacked.left_out),
        "attacks": [row.stored() for row in rows],
        "figures": [one.stored() for row in rows for one in row.figures],
    }
    return as_read(report)
