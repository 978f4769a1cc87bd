"""Whether a reader answers: tried in the background with one short text, so no caller has to find out."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

import structlog

from ttmark.detect_service.model_reader.dialect import ReaderBusy, ReaderError, ReaderRefused, TokenRefused
from ttmark.detect_service.model_reader.reader_client import ReaderClient
from ttmark.shared.byte_reading import InvalidReading

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
        """Tries for ever."""
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
