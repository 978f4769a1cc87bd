"""Messages of one conversation, perhaps written with several keys of a pool."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from ttmark.detect_service.features.conversation.conversation_evidence import (
    ConversationEvidence,
    detect_conversation,
)
from ttmark.shared.watermark.schemes.watermark import Watermark

PAIRS = Watermark("gumbel", 2, 2)
POOL = [bytes([i]) * 16 for i in range(4)]
Write = Callable[..., list[int]]


def test_short_empty_and_quoted_messages_add_nothing(generate: Write) -> None:
    message = generate(PAIRS, POOL[0], 40, 1)
    found = detect_conversation(PAIRS, POOL, [message, message, message])
    assert found.of_messages[0] > 1
    assert found.of_messages[1:] == pytest.approx([0.0, 0.0], abs=1e-12)
    message = generate(PAIRS, POOL[0], 40, 1)
    found = detect_conversation(PAIRS, POOL, [[], message, [3]])
    assert found.of_messages[[0, 2]].tolist() == [0.0, 0.0]
    assert detect_conversation(PAIRS, POOL, []).log10_e == 0.0


def test_the_p_value_is_that_of_the_best_moment_to_stop() -> None:
    found = ConversationEvidence(np.array([[2.0], [1.5], [-4.0]]))
    assert found.log10_p == -3.5
    assert ConversationEvidence(np.array([[-1.0]])).log10_p == 0.0


def test_without_the_mark_the_product_passes_x_at_most_once_in_x() -> None:
    """Conversations of three short messages that repeat one another, under keys that did not write them."""
    rng = np.random.default_rng(5)
    best = []
    for _ in range(400):
        words = rng.integers(0, 8, (3, 30))
        keys = [rng.bytes(16) for _ in range(2)]
        best.append(detect_conversation(PAIRS, keys, list(words)).log10_p)
    for x in (2.0, 5.0, 20.0):
        assert np.mean(np.array(best) <= -math.log10(x)) <= 1 / x + 4 * math.sqrt(1 / x / 400)


def test_a_conversation_needs_a_key() -> None:
    with pytest.raises(ValueError, match="no key"):
        detect_conversation(PAIRS, [], [[1, 2, 3, 4]])


def test_spent_positions_of_each_message_say_nothing(generate: Write) -> None:
    messages = [generate(PAIRS, POOL[0], 40, i) for i in range(2)]
    whole = detect_conversation(PAIRS, POOL[:1], messages).of_messages
    positions = len(messages[0]) - PAIRS.context_width - PAIRS.block_size + 1
    spent = np.ones(positions, dtype=np.bool_)
    found = detect_conversation(PAIRS, POOL[:1], messages, silent=[spent, None]).of_messages
    assert found[0] == pytest.approx(0.0, abs=1e-12)
    assert found[1] == whole[1] > 1
    spent[positions // 2 :] = False
    half = detect_conversation(PAIRS, POOL[:1], messages, silent=[spent, None]).of_messages
    assert 0.0 < half[0] < whole[0]
