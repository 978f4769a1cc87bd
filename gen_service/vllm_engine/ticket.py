"""How a request gets to the worker: over vLLM's process boundary in memory, never in vLLM's own arguments."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ttmark.gen_service.decoding.grammar import Grammar, GrammarSource
from ttmark.gen_service.decoding.request import GenerationRequest, Marking, ReadingRequest
from ttmark.shared.vault.confidential import Confidential

_MARKING, _GRAMMAR = "marking", "grammar"


@dataclass(frozen=True, slots=True)
class Opening:
    """What a worker needs to know before the first request.

    Attributes:
        address: where its reports go (ZeroMQ).
        folder: the model's, for its tokenizer.
        max_branches: branches of a block level that are probed together.
    """

    address: str
    folder: Path
    eos_token_ids: tuple[int, ...]
    vocab_size: int
    max_branches: int


@dataclass(frozen=True, slots=True, repr=False)
class Ticket(Confidential):
    """A request under a name that says nothing of it; vLLM sees the name alone."""

    name: str
    request: GenerationRequest | ReadingRequest

    def sealed(self) -> bytes:
        """For the worker's `open_ticket`; holds the key, so it is written nowhere."""
        parts: dict[str, Any] = {each.name: getattr(self.request, each.name) for each in fields(self.request)}
        if isinstance(self.request, GenerationRequest):
            marking, grammar = self.request.marking, self.request.grammar
            if marking is not None:
                parts[_MARKING] = {each.name: getattr(marking, each.name) for each in fields(marking)}
                watermark = marking.watermark
                parts[_MARKING]["watermark"] = (
                    type(watermark),
                    (watermark.scheme, watermark.block_size, watermark.context_width),
                    dict(watermark.parameters),
                )
            if grammar is not None:
                parts[_GRAMMAR] = grammar.source
        return pickle.dumps((self.name, type(self.request), parts))


def open_ticket(sealed: bytes, compile_grammar: Callable[[GrammarSource], Grammar]) -> Ticket:
    """What `Ticket.sealed` made, in the worker.

    Args:
        compile_grammar: makes a grammar from its source; another process cannot hand it over.
    """
    name, kind, parts = pickle.loads(sealed)  # noqa: S301 - from our own parent process
    if parts.get(_MARKING) is not None:
        marking = dict(parts[_MARKING])
        watermark, arguments, parameters = marking["watermark"]
        parts[_MARKING] = Marking(**marking | {"watermark": watermark(*arguments, parameters)})
    if parts.get(_GRAMMAR) is not None:
        parts[_GRAMMAR] = compile_grammar(parts[_GRAMMAR])
    return Ticket(name, kind(**parts))
