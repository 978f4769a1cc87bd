"""What a job's parts and head look like in the store: sealed under a data key of the job's own."""

from dataclasses import dataclass

import orjson
from pydantic import BaseModel, ConfigDict

from ttmark.detect_service.reader import RefusedDocument
from ttmark.shared.schemas.detection import Document
from ttmark.shared.schemas.jobs import JobOptions, JobResult
from ttmark.shared.vault.confidential import Confidential
from ttmark.shared.vault.data_key import DataKey
from ttmark.shared.vault.envelope import open_record, seal_record
from ttmark.shared.vault.kek import KeyWrapper


class JobHead(BaseModel):
    """Who made a job, when, and what it asks.

    Attributes:
        created_at: Unix time.
        part_documents: in each part but the last.
    """

    model_config = ConfigDict(frozen=True)

    token_id: str
    created_at: float
    part_documents: int
    options: JobOptions


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job's head and what opens the rest of it."""

    head: JobHead
    seal: "JobSeal"


class JobSeal(Confidential):
    """Seals and opens what is bound to one job and its place in it."""

    __slots__ = ("_job_id", "_key")

    def __init__(self, job_id: str, key: DataKey) -> None:
        self._job_id = job_id
        self._key = key

    def documents(self, part: int, documents: list[Document]) -> bytes:
        """Seals the documents of a part."""
        plain = orjson.dumps([document.model_dump(exclude_none=True) for document in documents])
        return self._key.seal(plain, self._name(b"documents", part))

    def open_documents(self, part: int, sealed: bytes) -> list[Document]:
        """The documents of a part.

        Raises:
            RecordTampered: it is not what was sealed.
        """
        plain = self._key.open(sealed, self._name(b"documents", part))
        return [RefusedDocument.stored(document) for document in orjson.loads(plain)]

    def results(self, part: int, results: list[JobResult]) -> bytes:
        """Seals the results of a part: their lines of JSON."""
        lines = b"\n".join(result.model_dump_json(exclude_none=True).encode() for result in results)
        return self._key.seal(lines, self._name(b"results", part))

    def open_results(self, part: int, sealed: bytes) -> list[bytes]:
        """The results of a part, each as JSON.

        Raises:
            RecordTampered: it is not what was sealed.
        """
        return self._key.open(sealed, self._name(b"results", part)).split(b"\n")

    def _name(self, kind: bytes, part: int) -> bytes:
        return b"ttmark job %b %b %d" % (self._job_id.encode(), kind, part)


async def seal_head(kek: KeyWrapper, job_id: str, head: JobHead) -> tuple[bytes, JobSeal]:
    """A job's sealed head, and what seals its parts: a new key, which only the head holds, wrapped."""
    plain = head.model_dump_json(exclude_unset=True).encode()
    sealed, key = await seal_record(kek, _head_name(job_id), plain)
    return sealed, JobSeal(job_id, key)


async def open_head(kek: KeyWrapper, job_id: str, sealed: bytes) -> OpenJob:
    """The inverse of `seal_head`; raises as `open_record`."""
    plain, key = await open_record(kek, _head_name(job_id), sealed)
    return OpenJob(JobHead.model_validate_json(plain), JobSeal(job_id, key))


def _head_name(job_id: str) -> bytes:
    return b"ttmark job %b head" % job_id.encode()
