"""Every HTTP call of ours: by which way it leaves, until when, and how much is read of its answer.

Nobody makes an httpx client elsewhere. Redirections are not followed, `.netrc` is not read, and answers are
asked for as they are: what is packed small may be vast.
"""

import asyncio
import os
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, TypeVar
from urllib.request import getproxies

import httpx

T = TypeVar("T")

MOST_BYTES = 256 * 2**20
"""Of an answer, unless a caller says less."""

_LOCAL = tuple(
    map(ip_network, ("127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"))
)
_INSIDE_ENDINGS = (".localhost", ".local", ".internal", ".svc", ".home.arpa")
_STARTING = threading.Lock()


class NotSent(httpx.TransportError):
    """The request was kept back; the message is one line that says why, and what to do."""


class AnswerNotRead(httpx.TransportError):
    """An answer came, and is longer than is read, or packed."""


def is_local(address: str) -> bool:
    return any(_address(address) in network for network in _LOCAL)


def _address(written: str) -> IPv4Address | IPv6Address:
    found = ip_address(written.partition("%")[0])
    return (isinstance(found, IPv6Address) and found.ipv4_mapped) or found


def is_public(address: str) -> bool:
    return _address(address).is_global


def is_inside(host: str) -> bool:
    """Whether a host is this machine or inside one's own network, told by how it is written alone.

    That are loopback and private addresses, `localhost`, names without a dot, as those of containers are, and
    endings that no public name has.
    """
    host = host.lower().rstrip(".")
    try:
        address = (
            host if ":" in host else socket.inet_ntoa(socket.inet_aton(host))
        )  # also 127.1, or one number
        return is_local(address) or ip_address(address).is_unspecified
    except (OSError, ValueError):
        return "." not in host or host.endswith(_INSIDE_ENDINGS)


class Deadline:
    """The end of a call, however many tries and bytes it is made of."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.begin_anew()

    def begin_anew(self) -> None:
        self._end = time.monotonic() + self._seconds

    def put_off(self, seconds: float) -> None:
        """For a time in which nothing is asked."""
        self._end += seconds

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """The block ends by then.

        Raises:
            httpx.ReadTimeout: it was not done.
        """
        try:
            async with asyncio.timeout(max(0.0, self._end - time.monotonic())):
                yield
        except TimeoutError:
            raise _Late(f"no whole answer within {self._seconds:g} s") from None


class _Late(httpx.ReadTimeout):
    """Of a deadline of ours."""


DEADLINE = "ttmark.deadline"
"""Extension of a request that is one of several tries, or part of a call: its `Deadline`."""


def http_client(
    *,
    seconds: float,
    most_bytes: int = MOST_BYTES,
    environment: bool = True,
    plain_http: bool = False,
    public_only: bool = False,
    base_url: httpx.URL | str = "",
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> httpx.AsyncClient:
    """The one way to a client; all its errors are `httpx.HTTPError`.

    Args:
        seconds: from the beginning of a request to the last byte of its answer.
        most_bytes: of an answer.
        environment: use the proxies and certificates that the environment names.
        public_only: send to public addresses over https alone, as strangers may have named the service.
        plain_http: an `Authorization` may leave over plain http to hosts that are not `is_inside`.
        tls: what certificates are trusted; None: the usual ones.
        transport: replaces the network, for tests.
    """
    proxies = getproxies() if environment else {}
    ways: dict[str | None, httpx.AsyncBaseTransport] = {} if transport is None else {None: transport}
    return httpx.AsyncClient(
        base_url=base_url,
        headers={"Accept-Encoding": "identity", **(headers or {})},
        transport=_Gate(seconds, most_bytes, environment, plain_http, public_only, tls, proxies, ways),
        timeout=None,  # noqa: S113 - httpx's begins anew with each byte
        follow_redirects=False,
        trust_env=False,
    )


def blocking(call: Coroutine[Any, Any, T]) -> T:
    """What a call gives, for a caller that blocks: in any thread, and beside a loop that runs in it.

    Raises:
        RuntimeError: the caller runs on the loop of calls itself; the call is made all the same.
    """
    loop = loop_of_calls()
    future = asyncio.run_coroutine_threadsafe(call, loop)
    if asyncio.events._get_running_loop() is loop:  # as does who closes what garbage held
        raise RuntimeError("a call that blocks would wait for itself")
    try:
        return future.result()
    finally:
        future.cancel()  # who no longer waits ends the call


def loop_of_calls() -> asyncio.AbstractEventLoop:
    """The loop of `blocking`, one a process."""
    with _STARTING:
        return _loop(os.getpid())


@cache
def _loop(_: int) -> asyncio.AbstractEventLoop:
    loop = _Loop()
    threading.Thread(target=loop.run_forever, name="ttmark-calls", daemon=True).start()
    return loop


class _Loop(asyncio.SelectorEventLoop):
    """Names are looked up in threads that no end of the process waits for, as a name server may be silent."""

    async def getaddrinfo(self, host: Any, port: Any, **how: Any) -> Any:
        found = self.create_future()

        def tell(setter: Any, value: Any) -> None:
            if not found.done():
                setter(value)

        def look_up() -> None:
            try:
                addresses = socket.getaddrinfo(host, port, **how)
            except Exception as error:
                self.call_soon_threadsafe(tell, found.set_exception, error)
            else:
                self.call_soon_threadsafe(tell, found.set_result, addresses)

        threading.Thread(target=look_up, daemon=True).start()
        return await found


@dataclass
class _Gate(httpx.AsyncBaseTransport):
    """Through which all requests leave, each in the way it has to, and all answers come."""

    seconds: float
    most_bytes: int
    environment: bool
    plain_http: bool
    public_only: bool
    tls: ssl.SSLContext | None
    proxies: Mapping[str, str]
    ways: dict[str | None, httpx.AsyncBaseTransport]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        proxy = self._proxy(request.url)
        if "Authorization" in request.headers and request.url.scheme == "http":
            self._check_plain(request.url, proxy)
        if self.public_only and (request.url.scheme != "https" or is_inside(_host(request.url))):
            raise NotSent("it is named by a stranger, and not a public address over https")
        way, deadline = self._way(proxy), request.extensions.get(DEADLINE) or Deadline(self.seconds)
        sent = False

        async def seen(event: str, details: Mapping[str, Any]) -> None:
            nonlocal sent
            sent = sent or event.endswith("send_request_headers.started")
            if self.public_only and proxy is None and event == "connection.connect_tcp.complete":
                stream = details["return_value"]
                if not is_public(stream.get_extra_info("server_addr")[0]):
                    await stream.aclose()
                    raise NotSent("it is named by a stranger, and its name leads to no public address")

        request.extensions["trace"] = seen
        try:
            async with deadline.kept():
                response = await way.handle_async_request(request)
        except _Late as error:
            raise error if sent else httpx.ConnectTimeout(str(error)) from None
        except (httpx.ProxyError, httpx.ConnectError) as error:
            raise error if proxy is None else type(error)(f"{_shown(proxy)}: {error}") from error
        read = _Read(response.stream, deadline, self.most_bytes)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await read.aclose()
            raise AnswerNotRead("its answer is packed, although none was asked for so")
        return httpx.Response(
            response.status_code, headers=response.headers, stream=read, extensions=response.extensions
        )

    async def aclose(self) -> None:
        for way in self.ways.values():
            await way.aclose()

    def _proxy(self, url: httpx.URL) -> str | None:
        proxy = self.proxies.get(url.scheme) or self.proxies.get("all")
        if not proxy or is_inside(_host(url)) or _is_among(url, self.proxies.get("no", "")):
            return None
        return proxy if "://" in proxy else f"http://{proxy}"

    def _check_plain(self, url: httpx.URL, proxy: str | None) -> None:
        """Raises NotSent: a token would be read by whoever is on the way."""
        where = f"no access token is sent to {url.scheme}://{url.netloc.decode('ascii')}"
        if proxy is not None:
            raise NotSent(f"{where} by {_shown(proxy)}, which could read it: ask over https, or set NO_PROXY")
        if not self.plain_http and not is_inside(_host(url)):
            raise NotSent(f"{where}, as others could read it: ask over https, or allow it with --plain-http")

    def _way(self, proxy: str | None) -> httpx.AsyncBaseTransport:
        if proxy not in self.ways:
            try:
                self.ways[proxy] = httpx.AsyncHTTPTransport(verify=self._tls(), trust_env=False, proxy=proxy)
            except (ValueError, ImportError, httpx.InvalidURL):
                raise NotSent(
                    f"{_shown(proxy)} cannot be used: set an http:// one, or name the host in NO_PROXY"
                ) from None
        return self.ways[proxy]

    def _tls(self) -> ssl.SSLContext:
        named = map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")) if self.environment else ()
        try:
            return self.tls or _trusting(*filter(None, named))
        except OSError as error:
            raise NotSent(f"SSL_CERT_FILE and SSL_CERT_DIR name no certificates: {error.strerror}") from error


@cache
def _trusting(*named: str) -> ssl.SSLContext:
    """Certificates that the environment names, or the usual ones; reading them takes longer than a call."""
    return httpx.create_ssl_context(trust_env=bool(named))


def _host(url: httpx.URL) -> str:
    """As it is asked for: not every name that begins with xn-- can be decoded."""
    return url.raw_host.decode("ascii")


def _is_among(url: httpx.URL, names: str) -> bool:
    """Whether NO_PROXY names a host: itself, a domain or a network that it lies in, perhaps with its port."""
    asked, port = _host(url), str(url.port or {"http": 80}.get(url.scheme, 443))
    for name in filter(None, map(str.strip, names.lower().split(","))):
        try:
            if ip_address(asked) in ip_network(name, strict=False):
                return True
        except ValueError:
            host, _, only = name.partition(":")
            host = host.lstrip("*.")
            if (name == "*" or (host and f".{asked}".endswith(f".{host}"))) and only in ("", port):
                return True
    return False


def _shown(proxy: str | None) -> str:
    """A proxy of the environment without its password."""
    kind, _, where = (proxy or "").partition("://")
    return f"the proxy of the environment ({kind}://{where.rpartition('@')[2]})"


class _Read(httpx.AsyncByteStream):
    """An answer's body, by its deadline and no longer than is read."""

    def __init__(self, stream: Any, deadline: Deadline, most: int) -> None:
        self._stream, self._deadline, self._most = stream, deadline, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces, read = aiter(self._stream), 0
        while True:
            async with self._deadline.kept():
                piece = await anext(pieces, None)
            if piece is None:
                return
            read += len(piece)
            if read > self._most:
                raise AnswerNotRead(f"its answer has more than {self._most} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
