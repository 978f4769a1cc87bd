"""What one request has of a reader: readings of the texts that it asks about, as far as there are any."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ttmark.detect_service.model_reader.dialect import Origin, OriginNotRead, ReaderError, ReaderRefused
from ttmark.detect_service.model_reader.reader_client import ReaderClient
from ttmark.shared.byte_reading import ByteReading, Content, InvalidReading, content_bytes
from ttmark.shared.http.service_errors import NotReady, Unprocessable
from ttmark.shared.schemas.detection import CombinedRequest, DetectionRequest

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_REMEMBERED = 64
# What a text costs beside its bytes, in bytes; and how much longer than lately a reading may take.
_A_TEXT, _LONGER = 200, 1.5


class ReadsAlong:
    """Asks the reader, and counts what comes of it; a text without a reading is no error.

    Args:
        client: None: there is no reader.
        timeout_seconds: of the client.
    """

    def __init__(
        self, client: ReaderClient | None, registry: CollectorRegistry, timeout_seconds: float = 5.0
    ) -> None:
        self._client = client
        self._timeout = timeout_seconds
        self._lately: deque[float] = deque(maxlen=_REMEMBERED)  # seconds a byte
        self._texts = Counter(
            "ttmark_detect_reader_texts",
            "Texts that a language model was asked to read along, by what came of it.",
            ["outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "ttmark_detect_reader_seconds",
            "Time that a request waited for its texts to be read.",
            buckets=_SECONDS,
            registry=registry,
        )
        for outcome in ("read", "refused", "failed"):
            self._texts.labels(outcome)
        up = Gauge(
            "ttmark_detect_reader_up",
            "Whether the language model that reads along answers; 0 where there is none.",
            registry=registry,
        )
        up.set_function(lambda: float(self.state == "up"))

    @property
    def exists(self) -> bool:
        """Whether there is a reader."""
        return self._client is not None

    @property
    def state(self) -> Literal["none", "down", "up"]:
        """Whether there is a reader, and it is thought to be well."""
        if self._client is None:
            return "none"
        return "up" if self._client.up else "down"

    def expected_seconds(self, sizes: Sequence[int]) -> float:
        """What reading texts of so many bytes takes, going by the slowest of late; at most the time-out."""
        if self.state != "up" or not sizes:
            return 0.0
        if not self._lately:
            return self._timeout
        return min(self._timeout, _LONGER * max(self._lately) * _cost(sizes))

    async def read_as(self, texts: Sequence[Content], origin: Origin) -> dict[Content, ByteReading]:
        """Readings of all of the texts, each as of this origin.

        Raises:
            Unprocessable: the reader does not read so, or not these.
            NotReady: it does not answer.
        """
        began = time.perf_counter()
        try:
            if self._client is None:
                raise OriginNotRead("there is no reader")
            readings = await self._client.read(texts, origin)
        except ReaderRefused as error:
            self._texts.labels("refused").inc(len(texts))
            raise not_read_so(error) from error
        except (ReaderError, InvalidReading) as error:
            self._texts.labels("failed").inc(len(texts))
            raise NotReady("The language model that reads along does not answer.", retry_after=1) from error
        self._texts.labels("read").inc(len(texts))
        self._seconds.observe(time.perf_counter() - began)
        return dict(zip(texts, readings, strict=True))

    async def read(
        self, texts: Sequence[Content], seconds: float | None = None
    ) -> dict[Content, ByteReading]:
        """Readings of those of the texts that the reader reads, within so many seconds."""
        if self._client is None or not texts:
            return {}
        began = time.perf_counter()
        try:
            async with asyncio.timeout(seconds):
                found = await self._read(self._client, list(texts))
        except TimeoutError:
            found = {}
            self._texts.labels("failed").inc(len(texts))
        taken = time.perf_counter() - began
        self._seconds.observe(taken)
        if len(found) == len(texts):
            self._lately.append(taken / _cost([len(content_bytes(text)) for text in texts]))
        return found

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _read(self, client: ReaderClient, texts: list[Content]) -> dict[Content, ByteReading]:
        try:
            readings = await client.read(texts)
        except ReaderRefused:
            if len(texts) == 1:
                self._texts.labels("refused").inc()
                return {}
            middle = len(texts) // 2
            return await self._read(client, texts[:middle]) | await self._read(client, texts[middle:])
        except (ReaderError, InvalidReading):
            self._texts.labels("failed").inc(len(texts))
            return {}
        self._texts.labels("read").inc(len(texts))
        return dict(zip(texts, readings, strict=True))


async def readings_of(
    reader: ReadsAlong | None,
    texts: Sequence[Content],
    request: DetectionRequest,
    seconds: float | None = None,
) -> dict[Content, ByteReading]:
    """Readings of a request's texts: of all, as made so, where it says how they were made.

    Raises:
        Unprocessable, NotReady: not all of such are read.
    """
    if isinstance(request, CombinedRequest) and request.has_origin:
        if reader is None:
            raise not_read_so(OriginNotRead("there is no reader"))
        return await reader.read_as(texts, request.origin)
    return {} if reader is None else await reader.read(texts, seconds)


def not_read_so(why: ReaderRefused) -> Unprocessable:
    """The refusal of a question about texts that no language model reads as of their origin."""
    return Unprocessable(
        f"No language model reads these texts after a prompt and at a sampling here: {why}.", param="inputs"
    )


def _cost(sizes: Sequence[int]) -> int:
    return sum(sizes) + _A_TEXT * len(sizes)
