"""People without an access token: the one route that they may ask, and by which name they are counted."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from starlette.datastructures import Headers
from starlette.types import Scope as AsgiScope

from ttmark.shared.http.service_errors import TooManyRequests
from ttmark.shared.vault.confidential import Confidential

GUEST = "guest"
"""Where the scope's state has the name of a guest."""
_NAMES = 8192  # however many addresses somebody has, this bounds what is kept of them
_SUBSCRIBER_BITS = 64  # of IPv6: whoever has one address has all that differ in the others


@dataclass(frozen=True, slots=True, repr=False)
class Guests(Confidential):
    """Who sends no Authorization header to `path`, in a POST, is answered under `token`.

    Attributes:
        path: the one route.
        token: what they are let in with; whatever else it allows stays shut.
        key: makes names of addresses that nobody can turn back, the same in all replicas. Few addresses share
            one by chance; they are counted together.
        admit: asked with a guest's name: None, or the seconds after which to try again.
    """

    path: str
    token: str
    key: bytes
    admit: Callable[[str], Awaitable[float | None]]

    def are_asking(self, scope: AsgiScope, headers: Headers) -> bool:
        """Whether this is a guest's request. A header that is empty or wrong is not the absence of one."""
        return scope["method"] == "POST" and scope["path"] == self.path and "authorization" not in headers

    async def let_in(self, scope: AsgiScope) -> None:
        """Counts a request by its address, and puts the guest's name into the scope's state.

        Raises:
            TooManyRequests: the address has sent too many.
        """
        name = scope["state"][GUEST] = self._name(scope.get("client"))
        wait = await self.admit(name)
        if wait is not None:
            raise TooManyRequests("Too many requests come from this address.", retry_after=wait)

    def _name(self, client: tuple[str, int] | None) -> str:
        network = subscriber(client[0] if client else "")
        digest = hashlib.blake2b(network.encode(), digest_size=8, key=self.key).digest()
        return f"{int.from_bytes(digest) % _NAMES:04x}"


def subscriber(address: str) -> str:
    """Whose address it is: of IPv6 the first 64 bits; all that is no address is one subscriber."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return f"{int(parsed) >> (128 - _SUBSCRIBER_BITS):x}/{_SUBSCRIBER_BITS}"
    return str(parsed)
