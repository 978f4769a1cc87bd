"""A range of the audit trail in one file: records as they lie in the folder, then a line that closes it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from ttmark.services.features.audit.chain_check import ChainCheck, Problem, Seam
from ttmark.services.features.audit.record import Head, Record, read_record
from ttmark.services.features.audit.segments import ChainSegment
from ttmark.shared.signed_files.signed_file import CasePublicKey
from ttmark.shared.vault.envelope import canonical_json

_WHOLE = "the export"

Sign = Callable[[bytes], bytes]


class Range(BaseModel):
    """What an export holds: of each chain its first and last number and last hash; the times asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal["ttmark-audit-export/1"] = "ttmark-audit-export/1"
    chains: Mapping[str, tuple[int, int, str]]
    since: str | None
    until: str | None

    @property
    def records(self) -> int:
        return sum(last - first + 1 for first, last, _ in self.chains.values())


class Closing(BaseModel):
    """The last line."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    export: Range
    signature: str | None

    def line(self) -> bytes:
        """Its one spelling, without an end."""
        return canonical_json(self.model_dump())

    def signed_by(self, key: CasePublicKey) -> bool:
        try:
            return key.signed(_signed(self.export), bytes.fromhex(self.signature or ""))
        except ValueError:
            return False


def export_lines(
    found: Mapping[str, list[ChainSegment]], since: str | None, until: str | None, sign: Sign | None
) -> Iterator[bytes]:
    """Lines without their ends: of each chain the records with `since` <= time < `until`; the closing line.

    Args:
        sign: makes the closing line's signature; None: there is none.

    Raises:
        Damaged: a record was changed. OSError: a file cannot be read.
    """
    chains: dict[str, tuple[int, int, str]] = {}
    for chain, parts in found.items():
        for part in _of_range(parts, since):
            for line in part.lines():
                record = read_record(line)
                if (since is None or since <= record.time) and (until is None or record.time < until):
                    first, *_ = chains.get(chain, (record.sequence,))
                    chains[chain] = first, record.sequence, record.hash
                    yield line
    held = Range(chains=chains, since=since, until=until)
    yield Closing(export=held, signature=None if sign is None else sign(_signed(held)).hex()).line()


def _signed(held: Range) -> bytes:
    return b"ttmark audit export\0" + canonical_json(held.model_dump())


def verify_export(
    lines: Iterable[bytes], key: CasePublicKey | None, seam: Seam | None = None
) -> Closing | Problem:
    """How an export is closed if it is as it was written, or the first thing that is wrong with it.

    Args:
        key: whose signature it has to bear; None: it is not looked at, so that who wrote it is not known.
        seam: to parts of the trail that were verified before.
    """
    seam = seam or Seam()
    seam.open_part()
    checks: dict[str, ChainCheck] = {}
    number, before = 0, None
    for number, line in enumerate(lines, start=1):
        problem = None if before is None else _follow(checks, seam, before, f"line {number - 1}")
        if problem is not None:
            return problem
        before = line
    closing = _closed_by(before)
    if closing is None:
        return Problem(_WHOLE, number, "the line that closes it is missing or was changed")
    for chain, (first, last, digest) in closing.export.chains.items():
        check = checks.pop(chain, None)
        if check is None or check.first is None or check.first.sequence != first:
            return Problem(chain, first, "is missing: the beginning was cut off")
        if check.last is None or check.last.head != Head(chain, last, digest):
            found = check.last.sequence if check.last else 0
            return Problem(chain, found + 1, f"the chain does not end with number {last} of the closing line")
    for chain in checks:
        return Problem(chain, 1, "is of a chain that the closing line does not name")
    if key is not None and not closing.signed_by(key):
        return Problem(_WHOLE, number, f"the closing line is not signed with the key {key.name}")
    return seam.close_part() or closing


def _of_range(parts: list[ChainSegment], since: str | None) -> list[ChainSegment]:
    """Without segments that end before the range, by the first record of the next."""
    skipped = 0
    for following in parts[1:]:
        first: Record | None = following.first_record()
        if since is None or first is None or first.time >= since:
            break
        skipped += 1
    return parts[skipped:]


def _follow(checks: dict[str, ChainCheck], seam: Seam, line: bytes, place: str) -> Problem | None:
    current = next(reversed(checks), "")
    try:
        chain = str(orjson.loads(line)["chain"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        chain = current  # whose next record it should be
    if chain < current:
        return Problem(chain, 1, f"stands after {current}: chains come in the order of their names", place)
    found = checks.setdefault(chain, ChainCheck(chain)).follow(line, place)
    return found if isinstance(found, Problem) else seam.meet(found, place)


def _closed_by(line: bytes | None) -> Closing | None:
    try:
        closing = Closing.model_validate_json(line or b"")
    except ValidationError:
        return None
    return closing if closing.line() == line else None
