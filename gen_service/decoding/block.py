"""The block of a completion that is in the making."""

from dataclasses import dataclass, field

import torch

from ttmark.gen_service.decoding.block_builder import BlockBuilder
from ttmark.gen_service.decoding.request import Marking
from ttmark.gen_service.decoding.share import LEAST_SHARE

TokenPath = tuple[int, ...]
"""The first tokens of a block."""


@dataclass(eq=False, slots=True)
class PlainBlock:
    """A block without watermark, whose tokens are sampled one by one.

    Attributes:
        left: tokens to come.
        opening: whether it belongs to the opening, where the probability of what is drawn counts.
        model_logits: the model's own logits [vocab] after each path, where log probabilities are asked for.
    """

    left: int
    opening: bool = False
    model_logits: dict[TokenPath, torch.Tensor] = field(default_factory=dict)

    @property
    def paths(self) -> list[TokenPath]:
        """After which first tokens of the block the next logits come."""
        return [()]


@dataclass(eq=False, slots=True)
class TandemBlock:
    """A watermarked block, drawn in one go from the joint distribution of its tokens.

    Attributes:
        marking: the watermark and its key.
        context: tokens that key the block.
        builder: the joint distribution, as far as it is known.
        uniform: the random number that draws the block.
        share: the least in any branch, as far as they are known, of the model's own choice of a token.
        model_logits: as in `PlainBlock`.
    """

    marking: Marking
    context: tuple[int, ...]
    builder: BlockBuilder
    uniform: float
    share: float = 1.0
    model_logits: dict[TokenPath, torch.Tensor] = field(default_factory=dict)

    @property
    def marked(self) -> bool:
        """Whether the key has a say: it has none in what the caller chose."""
        return self.share >= LEAST_SHARE

    @property
    def paths(self) -> list[TokenPath]:
        """After which first tokens of the block the next logits come."""
        return [tuple(path) for path in self.builder.frontier.tolist()]


Block = PlainBlock | TandemBlock
