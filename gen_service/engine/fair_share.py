"""Who is due next: the engine's rows shared between tenants by weight (start-time fair queueing)."""

from collections.abc import Collection, Mapping


class FairShare:
    """Rows that each tenant was given, counted so that the one with the fewest for its weight is due next.

    A tenant that comes in begins at the level of those who are paused, and one of whom nothing is paused is
    lifted to it: nobody saves up for later, and nobody pays for rows that no one else wanted. Between two
    tenants of whom something is paused all the time, the rows served for each one's weight differ by no more
    than a pass and a piece of work of each.

    Args:
        weights: of tenants whose weight is not 1; above 0.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self._weights = dict(weights or {})
        self._service: dict[str, float] = {}
        self._level = 0.0

    def level(self, tenant: str) -> float:
        """Rows for its weight that the tenant was given, on the common scale; the lowest is due."""
        return max(self._service.get(tenant, self._level), self._level)

    def serve(self, tenant: str, rows: int) -> None:
        """Counts rows for a tenant; negative ones were planned and given up."""
        self._service[tenant] = self.level(tenant) + rows / self._weights.get(tenant, 1.0)

    def settle(self, paused: Collection[str]) -> None:
        """A pass is planned; `paused` are the tenants of whom a sequence was passed over."""
        if paused:
            self._level = min(map(self.level, paused))
        else:
            self._level = max(self._service.values(), default=self._level)
        self._service = {tenant: rows for tenant, rows in self._service.items() if rows > self._level}
