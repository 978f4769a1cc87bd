"""What one HTTP request may cost before its content is looked at."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits on request bodies.

    Attributes:
        max_body_bytes: size of a body; more is a 413.
        body_seconds: time a client may take to send its body; more is a 408.
        least_body_rate: bytes a second at which the rest of a long body has to arrive once it is its sender's
            turn; less is a 408.
        max_json_depth: nesting of arrays and objects; more is a 400.
        max_json_containers: number of arrays and objects; more is a 400. A body full of empty ones takes the
            parser a hundred times longer than its size suggests.
        of_path: limits of single paths, in place of these.
    """

    max_body_bytes: int = 2 * 1024 * 1024
    body_seconds: float = 30.0
    least_body_rate: int = 65_536
    max_json_depth: int = 32
    max_json_containers: int = 10_000
    of_path: Mapping[str, "HttpLimits"] = field(default_factory=dict)

    def of(self, path: str) -> "HttpLimits":
        """The limits of a path."""
        return self.of_path.get(path, self)
