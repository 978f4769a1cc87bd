"""The watermarks of other systems: how each writes a text, and with which key it is read."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

import torch
from transformers import WatermarkingConfig

from ttmark.evaluation.peers.synthid import kept_synthid
from ttmark.evaluation.peers.vllm_gumbel import dual_key_row, gumbel_row
from ttmark.shared.watermark.foreign import ForeignMark, Kgw, SynthIdText, VllmGumbel

SYNTHID = "peer-synthid"
LAYERS, NGRAM = 30, 5
"""Of SynthID-Text, as its paper and our scheme have."""
ALPHA = 0.1
"""Share of vLLM's second key, by default."""

Row = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Of one text in a batch: token ids [1, tokens] and filtered scores [1, vocab] in, scores [1, vocab] out."""


@dataclass(frozen=True, slots=True)
class System:
    """A watermark of another system.

    Attributes:
        name: the scheme of its cells.
        needs: package that writes its texts.
        row: what writes a text: key, size of the vocabulary and tokens of the prompt in.
        mark: what reads it: key and size of the vocabulary in.
    """

    name: str
    title: str
    needs: str
    row: Callable[[bytes, int, int], Row]
    mark: Callable[[bytes, int], ForeignMark]

    def runs_here(self) -> bool:
        """Whether the package is installed."""
        return find_spec(self.needs) is not None


def words(key: bytes, count: int) -> tuple[int, ...]:
    """Keys of another system, 63 bits each, from one of ours."""
    digests = (hashlib.sha256(key + number.to_bytes(2, "little")).digest() for number in range(count))
    return tuple(int.from_bytes(digest[:8], "little") >> 1 for digest in digests)


def _word(key: bytes) -> int:
    return words(key, 1)[0]


def _kgw_row(key: bytes, vocabulary: int, _: int) -> Row:
    row: Row = WatermarkingConfig(hashing_key=_word(key)).construct_processor(vocabulary, "cpu")
    return row


def _synthid_row(key: bytes, _vocabulary: int, _prompt_tokens: int) -> Row:
    return kept_synthid(words(key, LAYERS), NGRAM)


SYSTEMS: Mapping[str, System] = {
    system.name: system
    for system in (
        System(
            SYNTHID,
            "transformers SynthID-Text",
            "transformers",
            _synthid_row,
            lambda key, _: SynthIdText(words(key, LAYERS), NGRAM),
        ),
        System(
            "peer-kgw",
            "transformers KGW",
            "transformers",
            _kgw_row,
            lambda key, vocabulary: Kgw(vocabulary, _word(key)),
        ),
        System(
            "peer-vllm-gumbel",
            "vLLM Gumbel",
            "vllm",
            lambda key, _, prompt_tokens: gumbel_row(_word(key), prompt_tokens),
            lambda key, _: VllmGumbel(_word(key)),
        ),
        System(
            "peer-vllm-dual",
            "vLLM Gumbel, two keys",
            "vllm",
            lambda key, _, prompt_tokens: dual_key_row(_word(key), prompt_tokens),
            lambda key, _: VllmGumbel(_word(key), alpha=ALPHA),
        ),
    )
}
