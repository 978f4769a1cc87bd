"""Addresses inside a deployment: loopback and private ones."""

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import httpx

from ttmark.detect_service.model_reader.dialect import ReaderDown, ReaderElsewhere

Address = IPv4Address | IPv6Address

_PORTS = {"http": 80, "https": 443}
_LOCAL = tuple(
    map(ip_network, ("127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"))
)


def is_local(address: str) -> bool:
    """Whether an IP address is loopback or private."""
    found: Address = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return any(found in network for network in _LOCAL)


def check_address(url: httpx.URL) -> None:
    """Refuses what is known to lie outside; a name that nobody knows yet is looked up again at each call.

    Raises:
        ReaderElsewhere: it is no address of a reader, or lies outside loopback and private addresses.
    """
    if url.scheme not in _PORTS or not url.host or url.userinfo:
        raise ReaderElsewhere("the reader's address is http://host:port or https://host:port")
    try:
        found = socket.getaddrinfo(url.host, _port(url), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return
    _refuse_others(str(entry[4][0]) for entry in found)


async def local_address(url: httpx.URL) -> str:
    """The IP address of a reader inside the deployment.

    Raises:
        ReaderElsewhere: it lies outside.
        ReaderDown: its name is not known.
    """
    try:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(url.host, _port(url), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ReaderDown("the reader's name is not known") from error
    addresses = [str(entry[4][0]) for entry in found]
    _refuse_others(addresses)
    return addresses[0]


def _refuse_others(addresses: Iterable[str]) -> None:
    if not all(map(is_local, addresses)):
        raise ReaderElsewhere("the reader is outside loopback and private addresses")


def _port(url: httpx.URL) -> int:
    return url.port or _PORTS[url.scheme]
