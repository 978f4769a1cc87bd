"""The HTTP client of a reader: within a time and a number of bytes, and inside the deployment."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import httpx
import orjson

from ttmark.detect_service.features.reader.dialect import (
    Dialect,
    Origin,
    ReaderBusy,
    ReaderDown,
    ReaderElsewhere,
    ReaderError,
    ReaderRefused,
    ReaderRequest,
    TokenRefused,
)
from ttmark.shared.batches import batches
from ttmark.shared.byte_reading import ByteReading, Content, InvalidReading, content_bytes
from ttmark.shared.outgoing import AnswerNotRead, http_client, is_inside, is_local
from ttmark.shared.vault.confidential import Confidential

_PORTS = {"http": 80, "https": 443}


def check_address(url: httpx.URL) -> None:
    """Refuses what is known to lie outside; a name that nobody knows yet is looked up again at each call.

    Raises:
        ReaderElsewhere: it is no address of a reader, or lies outside loopback and private addresses.
    """
    if url.scheme not in _PORTS or not url.host or url.userinfo:
        raise ReaderElsewhere("the reader's address is http://host:port or https://host:port")
    with suppress(OSError, UnicodeError):
        _local_addresses(url)


async def local_address(url: httpx.URL) -> str:
    """The IP address of a reader inside. Raises ReaderElsewhere: it lies outside; ReaderDown: not known."""
    try:
        return (await asyncio.to_thread(_local_addresses, url))[0]
    except (OSError, UnicodeError) as error:
        raise ReaderDown("the reader's name is not known") from error


def _local_addresses(url: httpx.URL) -> list[str]:
    found = socket.getaddrinfo(url.host, url.port or _PORTS[url.scheme], type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    if not all(map(is_local, addresses)):
        raise ReaderElsewhere("the reader is outside loopback and private addresses")
    return addresses


_MOST_TEXTS = 64
NO_ORIGIN: Origin = {}
_MOST_TEXT_BYTES = 131_072
_ABOUT_THE_TEXTS, _ABOUT_THE_TOKEN, _BUSY = frozenset({400, 413, 422}), (401, 403), (429, 503)
# Until a reader that is busy is asked again: where it does not say, and at most, whatever it says.
_REST_SECONDS, _LONGEST_REST_SECONDS = 1.0, 3.0


class ReaderClient(Confidential):
    """Readings of texts by the model that a reader runs.

    Redirections are not followed, and no proxy of the environment is used. Unless it may be anywhere, the
    reader's name is looked up at each call, and nothing is sent outside loopback and private addresses.

    Args:
        address: of the reader, without `/v1`.
        token: that the reader asks for; None: it asks for none.
        timeout_seconds: for all that one call of `read` sends and gets.
        anywhere: whether the reader may be outside loopback and private addresses.
        tls: what certificates are trusted; None: the usual ones.

    Raises:
        ReaderElsewhere: the address is none, or lies outside although the reader may not be anywhere.
    """

    def __init__(
        self,
        address: str,
        dialect: Dialect,
        *,
        token: str | None = None,
        timeout_seconds: float = 5.0,
        anywhere: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        try:
            self._url = httpx.URL(address.rstrip("/") + "/")
        except httpx.InvalidURL as error:
            raise ReaderElsewhere("the reader's address is none") from error
        if not anywhere:
            check_address(self._url)
        elif token is not None and self._url.scheme == "http" and not is_inside(self._url.host):
            raise ReaderElsewhere("a reader outside gets its token over https alone")
        self._dialect = dialect
        self._seconds = timeout_seconds
        self._anywhere = anywhere
        self._http = http_client(
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
            seconds=timeout_seconds,
            environment=False,
            tls=tls,
        )

    async def aclose(self) -> None:
        await self._http.aclose()

    async def read(self, texts: Sequence[Content], origin: Origin = NO_ORIGIN) -> list[ByteReading]:
        """A reading of each text, all or none; those of an origin are read one by one.

        Raises:
            ReaderDown: it does not answer, or not within the time-out.
            TokenRefused, ReaderBusy: it says so.
            OriginNotRead, ReaderRefused: it does not read texts of an origin, or not these.
            ReaderElsewhere: it may not be sent any.
            InvalidReading: what it says cannot be said of the texts.
        """
        count = 1 if origin else _MOST_TEXTS  # what a text continues counts with each
        together = batches(texts, lambda text: len(content_bytes(text)), _MOST_TEXT_BYTES, count=count)
        try:
            async with asyncio.timeout(self._seconds):
                found = [await self._read(batch, origin) for batch in together]
        except TimeoutError as error:
            raise ReaderDown("the reader did not answer in time") from error
        except AnswerNotRead as error:
            raise InvalidReading("length") from error
        except httpx.HTTPError as error:
            raise ReaderDown(f"the reader does not answer: {type(error).__name__}") from error
        return list(chain.from_iterable(found))

    async def _read(self, texts: Sequence[Content], origin: Origin) -> list[ByteReading]:
        question = await asyncio.to_thread(self._dialect, texts, origin)
        content = await self._answer(question)
        return await asyncio.to_thread(_understood, question, content)

    async def _answer(self, question: ReaderRequest) -> bytes:
        """The body of a good answer, as far as it may be true."""
        url, own, extensions = self._url.join(question.path), {}, {}
        if not self._anywhere:
            own = {"Host": url.netloc.decode("ascii")}
            extensions = {"sni_hostname": url.host}
            url = url.copy_with(host=await local_address(url))
        async with self._http.stream(
            "POST",
            url,
            content=orjson.dumps(question.body),
            headers={"Content-Type": "application/json", **own},
            extensions=extensions,
        ) as response:
            if not response.is_success:
                raise _failure(response)
            content = bytearray()
            async for piece in response.aiter_raw():
                content += piece
                if len(content) > question.most_bytes:
                    raise InvalidReading("length")
        return bytes(content)


def _failure(response: httpx.Response) -> ReaderError:
    said, status = f"the reader answered {response.status_code}", response.status_code
    if status in _BUSY:
        rest = response.headers.get("Retry-After", "")  # a date is passed over
        seconds = float(rest) if rest.isascii() and rest.isdecimal() else _REST_SECONDS
        return ReaderBusy(said, min(seconds, _LONGEST_REST_SECONDS))
    if status in _ABOUT_THE_TOKEN:
        return TokenRefused(said)
    return ReaderRefused(said) if status in _ABOUT_THE_TEXTS else ReaderDown(said)


def _understood(question: ReaderRequest, content: bytes) -> list[ByteReading]:
    try:
        answer: Any = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise InvalidReading("not_numbers") from None
    return question.readings(answer)
