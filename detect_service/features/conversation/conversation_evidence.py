"""What the messages of a conversation say together: E multiplies, and one may stop at any time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.interruption import pause
from ttmark.shared.watermark.likelihood.evidence import log10_of_evidence, ratios_of
from ttmark.shared.watermark.likelihood.forward_backward import find_passes, log10_mean
from ttmark.shared.watermark.likelihood.hidden_markov_model import Ratios, Rows
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.schemes.watermark import Watermark
from ttmark.shared.watermark.score_distributions import Floats


@dataclass(frozen=True, slots=True, eq=False)
class ConversationEvidence:
    """What messages say together.

    Attributes:
        of_keys: log10 E of each message under each key [messages, keys].
    """

    of_keys: Floats

    @property
    def of_messages(self) -> Floats:
        """log10 of the mean over keys, by message [messages]: each may have been written with another key."""
        return log10_mean(self.of_keys, axis=1)

    @property
    def grown(self) -> Floats:
        """log10 of the product up to each message [messages].

        Without the mark it exceeds x, at any message ever, with a chance of at most 1 / x (Ville).
        """
        return np.cumsum(self.of_messages)

    @property
    def log10_e(self) -> float:
        """Of all messages."""
        return float(self.of_messages.sum())

    @property
    def log10_p(self) -> float:
        """At most: 1 over the largest product so far."""
        return -max(0.0, float(self.grown.max(initial=0.0)))


def detect_conversation(
    watermark: Watermark,
    prf_keys: Sequence[bytes],
    messages: Sequence[Sequence[int] | NDArray[np.int64]],
    *,
    readings: Sequence[Reading | None] | None = None,
    silent: Sequence[NDArray[np.bool_] | None] | None = None,
    ratios: Ratios | None = None,
) -> ConversationEvidence:
    """Tests messages for marks of the keys of a pool.

    A (context, block) counts once in the whole conversation, whatever the key, so that the factors' means
    stay at most 1 given the messages before.

    Args:
        silent: positions of each message [positions] whose blocks are to say nothing; None: none.

    Raises:
        ValueError: a bad token or key, no key, or a reading of another number of tokens.
    """
    if not prf_keys:
        raise ValueError("no key to test for")
    passes = find_passes()
    rows = Rows.of(watermark, ratios or ratios_of(watermark), messages, readings)
    if silent is not None:
        rows = rows.without(silent)
    of_keys = np.zeros((len(rows.chains), len(prf_keys)))
    for keys, cells in rows.cells_under_each(watermark, prf_keys):
        for message, (chain, own) in enumerate(rows.of_messages(cells)):
            pause()
            of_keys[message, keys] = log10_of_evidence(passes, chain, own)
    return ConversationEvidence(of_keys)
