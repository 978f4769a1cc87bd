"""What happened to keys, tokens and texts, for whoever hears of it. No text, no secret."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog


@dataclass(init=False, slots=True)
class Event:
    """One thing that was done, or refused.

    Attributes:
        action: to what, and what: `key.rotate`, `token.refuse`.
        said: with which key, by whom, how much; what nobody knows (None) is left out.
    """

    action: str
    said: dict[str, Any]

    def __init__(self, action: str, **said: Any) -> None:
        self.action = action
        self.said = {name: value for name, value in said.items() if value is not None}


EventSink = Callable[[Event], None]


def log_event(event: Event) -> None:
    """Writes the event to the structured log, under the logger `ttmark.audit`."""
    structlog.stdlib.get_logger("ttmark.audit").info("audit", action=event.action, **event.said)


def drop_event(event: Event) -> None:
    """Tells nobody."""


def to_all(*sinks: EventSink) -> EventSink:
    def tell(event: Event) -> None:
        for sink in sinks:
            sink(event)

    return tell
