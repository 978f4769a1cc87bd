"""The opening of a completion: what is drawn before its first mark, so that equal questions part ways."""

from ttmark.gen_service.decoding.request import GenerationRequest

OPENING = "opening"
"""Why a block is unmarked that comes before the completion has gone a way of its own."""
TOKENS_PER_BIT = 4
"""Tokens that a completion may have for each bit of its opening: docs/adr/0099."""


def opening_bits(request: GenerationRequest) -> float:
    """Surprise, in bits, that a completion spends before its first mark.

    The surprise of a token is -log2 of the probability that it was drawn with. Less where the completion may
    have few tokens, and none under a grammar, where a whole text may hold no more, unless
    it may be free.
    """
    held = request.grammar is not None and not request.grammar.source.free
    if request.marking is None or held:
        return 0.0
    return min(request.marking.opening_bits, request.sampling.max_tokens / TOKENS_PER_BIT)
