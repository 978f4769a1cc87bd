"""The report of a conformance run: figures, and all that says what they are of; no text and no secret."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from ttmark.evaluation.conformance.measure import MeasuredRun
from ttmark.evaluation.conformance.page import page_parts
from ttmark.evaluation.conformance.plan import PROMPTS_PATH, Size, TextCounts
from ttmark.evaluation.run_manifest import machine, versions
from ttmark.shared import watermark
from ttmark.shared.keys.held_keys import UnlockedKey
from ttmark.shared.schemas.detection.detect import DEFAULT_FPR
from ttmark.shared.signed_files.signed_file import CONFORMANCE_FORMAT, JSON_NAME, PAGE_NAME, REPORTS, CaseKey
from ttmark.shared.whole_file import AS_UMASK_SAYS, write_whole

Page = Callable[[Mapping[str, Any]], tuple[str, str]]
"""What stands before and after the data of a report."""

_TABLES = Path(watermark.__file__).with_name("tables")


@dataclass(frozen=True, slots=True)
class Deployment:
    """What is measured.

    Attributes:
        files: SHA-256 of each file of the model's folder, by name.
        served: settings of the generation service that a text depends on.
    """

    key: UnlockedKey
    model: str
    files: Mapping[str, str]
    tokenizer_fingerprint: str
    served: Mapping[str, Any]

    def described(self) -> dict[str, Any]:
        key = self.key
        return {
            "key": {
                "key_id": key.key_id,
                "tenant": key.tenant,
                "profile_id": key.profile.profile_id,
                "profile": key.profile.canonical().decode(),
                "pool": key.profile.pool,
                "versions": [{"version": one.version, "state": one.state.value} for one in key.versions],
            },
            "model": {
                "name": self.model,
                "files": dict(self.files),
                "tokenizer_fingerprint": self.tokenizer_fingerprint,
                "served": dict(self.served),
            },
        }


def prompts_sha256() -> str:
    """Of the file with the prompts."""
    return hashlib.sha256(PROMPTS_PATH.read_bytes()).hexdigest()


def make_report(
    deployment: Deployment,
    measured: MeasuredRun,
    *,
    size: Size,
    plan: TextCounts,
    seed: int,
    command: str,
    seconds: float,
    signing_key: str,
) -> dict[str, Any]:
    """The document that is signed.

    Args:
        seconds: that this command took; a run that was resumed took longer.
        signing_key: name of the public key.
    """
    tables = hashlib.sha256()
    for path in sorted(_TABLES.glob("*.json")):
        tables.update(path.name.encode() + b"\0" + path.read_bytes())
    report = {
        "format": CONFORMANCE_FORMAT,
        **made_by(command, seconds, signing_key),
        "size": size.value,
        "plan": asdict(plan),
        "seed": seed,
        **deployment.described(),
        "detection": {
            "route": "/v1/detect",
            "normalize": True,
            "default_fpr": DEFAULT_FPR,
            "keys_of_a_question": 1,
        },
        "prompts_sha256": prompts_sha256(),
        "null_tables_sha256": tables.hexdigest(),
        "sets": [
            {"name": one.name, "origin": one.origin, "texts": len(one.texts), "sha256": one.sha256}
            for one in measured.sets
        ],
        "answer_tokens": measured.tokens,
        "spoken": {
            code: {"answers_in_it": within, "answers": answers}
            for code, (within, answers) in measured.spoken.items()
        },
        "figures": [one.stored() for one in measured.figures],
        "quality": [one.stored() for one in measured.quality],
    }
    return as_read(report)


def made_by(command: str, seconds: float, signing_key: str) -> dict[str, Any]:
    return {
        "signing_key": signing_key,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "release": version("ttmark"),
        "command": command,
        "seconds": round(seconds, 1),
        "versions": versions(),
        "machine": machine(),
    }


def as_read(report: dict[str, Any]) -> dict[str, Any]:
    """As a reader of the file has it: tuples are lists, keys are text."""
    return dict(orjson.loads(orjson.dumps(report)))


def write_report(folder: Path, report: dict[str, Any], key: CaseKey, page: Page = page_parts) -> None:
    before, after = page(report)
    for name, text in (
        (PAGE_NAME, REPORTS.page(before, report, after, key)),
        (JSON_NAME, REPORTS.file(report, key)),
    ):
        write_whole(folder / name, text.encode(), mode=AS_UMASK_SAYS)
