"""What one request has of a reader: readings of the texts that it asks about, as far as there are any."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Literal

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ttmark.detect_service.features.reader.dialect import (
    Origin,
    ReaderBusy,
    ReaderDown,
    ReaderError,
    ReaderRefused,
    TokenRefused,
)
from ttmark.detect_service.features.reader.reader_client import NO_ORIGIN, ReaderClient
from ttmark.detect_service.features.reader.reading_speed import TenantReadings, cost, cost_of
from ttmark.detect_service.stage import not_read_so
from ttmark.shared.batches import batches
from ttmark.shared.byte_reading import ByteReading, Content, InvalidReading, content_bytes
from ttmark.shared.http.service_errors import NotReady

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# How much longer than lately a reading may take; or, where none is known, than the reader's answer to a try.
_LONGER, _UNKNOWN = 2.0, 3.0
_MOST_TENANTS, _MOST_TOGETHER = 1_000, 64
# Places at the reader, one of which is for what is short: of at most so many seconds.
_PLACES, _SHORT_SECONDS = 4, 0.5


class TooSlow(ReaderError):
    """The texts were not sent: they would not have been read in time."""

    outcome = "too_slow"


class ReaderMetrics:
    """Texts by what came of them, the time that requests waited, and whether the reader answers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.texts = Counter(
            "ttmark_detect_reader_texts",
            "Texts that a language model was asked to read along, by what came of it.",
            ["outcome"],
            registry=registry,
        )
        self.seconds = Histogram(
            "ttmark_detect_reader_seconds",
            "Time that a request waited for its texts to be read.",
            buckets=_SECONDS,
            registry=registry,
        )
        for outcome in ("read", "refused", "failed", "busy", "too_slow"):
            self.texts.labels(outcome)
        self.up = Gauge(
            "ttmark_detect_reader_up",
            "Whether the language model that reads along answers; 0 where there is none, -1: it refuses us.",
            registry=registry,
        )


class ReadsAlong:
    """Asks the reader, and counts what comes of it; a text without a reading is no error.

    Tenants take turns, a few texts at a time. Nothing is sent while the reader is down, of a tenant to whom
    it said that it is busy, or that would not be read in time, as far as the tenant's last readings say.
    """

    def __init__(self, client: ReaderClient, metrics: ReaderMetrics, timeout_seconds: float = 5.0) -> None:
        self._client = client
        self._timeout = timeout_seconds
        self._probe = ReaderProbe(client, self._give_up)
        self._places, self._long = asyncio.Semaphore(_PLACES), asyncio.Semaphore(_PLACES - 1)
        self._tenants: OrderedDict[str, TenantReadings] = OrderedDict()  # in the order of their last use
        self._limits: set[asyncio.Timeout] = set()
        self._texts, self._seconds = metrics.texts, metrics.seconds
        numbers = {"up": 1.0, "down": 0.0, "token": -1.0}
        metrics.up.set_function(lambda: numbers[self._probe.state])

    async def watch(self) -> None:
        """Tries for ever whether the reader answers."""
        await self._probe.run()

    async def aclose(self) -> None:
        await self._client.aclose()

    @property
    def state(self) -> Literal["down", "up"]:
        return "up" if self._probe.state == "up" else "down"

    def expected_seconds(self, line: str, sizes: Sequence[int]) -> float:
        """What reading texts of so many bytes takes, going by those of the line; at most the time-out."""
        if self.state != "up" or not sizes:
            return 0.0
        lately, tries = self._of(line).rate(), self._rate_of_tries
        rate = _UNKNOWN * tries if lately is None else _LONGER * lately
        return min(self._timeout, rate * cost(sizes))

    async def read_as(
        self, texts: Sequence[Content], line: str, origin: Origin
    ) -> dict[Content, ByteReading]:
        """Readings of all of the texts, each as of this origin.

        Raises:
            Unprocessable: the reader does not read so, or not these.
            NotReady: it does not answer, or has no time.
        """
        began = time.monotonic()
        try:
            async with self._at_most(self._timeout) as limit:
                readings = await self._sent(texts, self._of(line), limit, origin)
        except (ReaderError, InvalidReading, TimeoutError) as error:
            self._unread(error, len(texts))
            if isinstance(error, ReaderRefused):
                raise not_read_so(error) from error
            rest = error.seconds if isinstance(error, ReaderBusy) else 1.0
            raise NotReady(
                "The language model that reads along does not answer.", retry_after=rest
            ) from error
        self._texts.labels("read").inc(len(texts))
        self._seconds.observe(time.monotonic() - began)
        return dict(zip(texts, readings, strict=True))

    async def read(
        self, texts: Sequence[Content], line: str, seconds: float | None = None
    ) -> dict[Content, ByteReading]:
        """Readings of those of the texts that the reader reads within so many seconds, the shortest first."""
        if not texts:
            return {}
        tenant, began = self._of(line), time.monotonic()
        left, found = self._pieces(texts, tenant), dict[Content, ByteReading]()
        try:
            async with self._at_most(self._timeout if seconds is None else seconds) as limit:
                while left:
                    found |= await self._read_first(left, tenant, limit)
        except (ReaderError, InvalidReading, TimeoutError) as error:
            self._unread(error, sum(map(len, left)))
        taken = time.monotonic() - began
        self._seconds.observe(taken)
        if self.state == "up" and (not left or limit.expired()):
            tenant.add(taken, cost_of(texts))
        return found

    async def _read_first(
        self, left: deque[list[Content]], tenant: TenantReadings, limit: asyncio.Timeout
    ) -> dict[Content, ByteReading]:
        """Readings of the first texts of those that are left, or of none where they are two parts now."""
        texts = left[0]
        try:
            readings = await self._sent(texts, tenant, limit)
        except (ReaderRefused, TooSlow) as error:
            middle = len(texts) // 2
            if not middle and isinstance(error, TooSlow):
                raise
            left.popleft()
            if middle:
                left.extendleft((texts[middle:], texts[:middle]))
            else:
                self._texts.labels("refused").inc()
            return {}
        left.popleft()
        self._texts.labels("read").inc(len(texts))
        return dict(zip(texts, readings, strict=True))

    async def _sent(
        self,
        texts: Sequence[Content],
        tenant: TenantReadings,
        limit: asyncio.Timeout,
        origin: Origin = NO_ORIGIN,
    ) -> list[ByteReading]:
        """Readings of texts that go to the reader together, when it is the tenant's turn."""
        costs = cost_of(texts)
        self._check(costs, tenant, limit)
        is_short = costs * self._rate(tenant) <= _SHORT_SECONDS
        # First come, first served: as a tenant has two in the line at most, tenants take turns.
        async with tenant.turns, nullcontext() if is_short else self._long, self._places:
            self._check(costs, tenant, limit)
            try:
                return await self._client.read(texts, origin)
            except ReaderRefused:
                raise
            except ReaderBusy as busy:
                tenant.rests_until = time.monotonic() + busy.seconds
                raise
            except BaseException:
                self._probe.doubt()
                raise

    def _check(self, costs: int, tenant: TenantReadings, limit: asyncio.Timeout) -> None:
        """Whether texts are worth sending. Raises ReaderDown, ReaderBusy, TooSlow: they are not."""
        if self.state != "up":
            raise ReaderDown("the reader does not answer")
        rest = tenant.rests_until - time.monotonic()
        if rest > 0:
            raise ReaderBusy("the reader was busy a moment ago", rest)
        ends = limit.when()
        if ends is not None and asyncio.get_running_loop().time() + tenant.at_least(costs) >= ends:
            raise TooSlow("the reader would not read these in time")

    @asynccontextmanager
    async def _at_most(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        """A limit of time, which is over at once when the reader goes down."""
        async with asyncio.timeout(seconds) as limit:
            self._limits.add(limit)
            try:
                yield limit
            finally:
                self._limits.discard(limit)

    def _give_up(self) -> None:
        """Nobody waits for a reader that is down; how slow it was before tells nothing of what it will be."""
        self._tenants.clear()
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(0.0)

    def _pieces(self, texts: Sequence[Content], tenant: TenantReadings) -> deque[list[Content]]:
        """Texts to be sent together, the shortest first: so few that others have their turn soon."""
        most = max(1, int(_SHORT_SECONDS / self._rate(tenant)))
        by_size = sorted(texts, key=lambda text: len(content_bytes(text)))
        return deque(batches(by_size, lambda text: cost_of([text]), most, count=_MOST_TOGETHER))

    def _unread(self, error: Exception, texts: int) -> None:
        self._texts.labels(getattr(error, "outcome", "failed")).inc(texts)

    def _rate(self, tenant: TenantReadings) -> float:
        """Seconds a byte of cost."""
        return tenant.rate() or self._rate_of_tries

    @property
    def _rate_of_tries(self) -> float:
        seconds = self._probe.seconds
        return (self._timeout if seconds is None else seconds) / cost_of([PROBE])

    def _of(self, line: str) -> TenantReadings:
        tenant = self._tenants.setdefault(line, TenantReadings())
        self._tenants.move_to_end(line)
        if len(self._tenants) > _MOST_TENANTS:
            self._tenants.popitem(last=False)
        return tenant


PROBE = "A short text that is read now and then, to see whether there is an answer."
# Of one try; between two tries while the reader answers; the first and the longest rest while it does not.
# Back again it is known to be after the rest of a try, a rest and an answer.
TRY_SECONDS, IDLE_SECONDS, FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 3.0, 5.0, 0.25, 2.0

ProbeState = Literal["up", "down", "token"]
_WHY = {
    "up": "the reader answers",
    "down": "the reader does not answer; texts are not read until it does",
    "token": "the reader does not take TTMARK_READER_TOKEN: there it needs the scope read",
}


class ReaderProbe:
    """Tries a reader now and then, and alone says whether it answers.

    One try has ended when the next begins, and what comes of a try after its time is dropped. What becomes of
    callers' questions, early or late, does no more than begin a try.

    Attributes:
        state: by the last try; `token`: the reader does not take ours.
        seconds: that the last answer took; None: there was none so far.

    Args:
        went_down: told when the reader answers no longer.
    """

    def __init__(self, client: ReaderClient, went_down: Callable[[], None]) -> None:
        self.state: ProbeState = "up"
        self.seconds: float | None = None
        self._client = client
        self._went_down = went_down
        self._doubted = asyncio.Event()
        self._log = structlog.stdlib.get_logger("ttmark.reader")

    def doubt(self) -> None:
        """A question failed: the next try begins at once, unless the reader is known to be down."""
        self._doubted.set()

    async def run(self) -> None:
        rest = FIRST_REST_SECONDS
        while True:
            self._doubted.clear()
            was, self.state = self.state, await self._tried()
            if self.state != was:
                tell = self._log.info if self.state == "up" else self._log.warning
                tell("reader", state=self.state, reason=_WHY[self.state])
            if self.state != "up" and was == "up":
                self._went_down()
            rest = FIRST_REST_SECONDS if self.state == "up" else min(2 * rest, LONGEST_REST_SECONDS)
            await asyncio.sleep(rest)
            if self.state == "up":
                with suppress(TimeoutError):
                    async with asyncio.timeout(IDLE_SECONDS):
                        await self._doubted.wait()

    async def _tried(self) -> ProbeState:
        began = time.monotonic()
        try:
            async with asyncio.timeout(TRY_SECONDS):
                await self._client.read([PROBE])
        except (ReaderBusy, ReaderRefused):
            return "up"  # it answers
        except TokenRefused:
            return "token"
        except (ReaderError, InvalidReading, TimeoutError):
            return "down"
        except Exception as error:  # who tries no more never finds it up
            self._log.error("reader_not_tried", error=type(error).__name__)
            return "down"
        self.seconds = time.monotonic() - began
        return "up"
