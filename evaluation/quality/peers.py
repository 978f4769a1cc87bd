"""Marks of other systems as watermarks of the engine, each by the original's own numbers.

All work on the tokens that the filters leave: transformers' processors of marks run after the filters, and
vLLM's sampler does. The other system's key follows from one of ours.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import SynthIDTextWatermarkLogitsProcessor, WatermarkLogitsProcessor

from ttmark.shared.watermark.foreign.kgw import Kgw
from ttmark.shared.watermark.foreign.synthid_text import SynthIdText
from ttmark.shared.watermark.foreign.vllm_gumbel import VllmGumbel, uniform, weighted_keys
from ttmark.shared.watermark.prf import ContextTracker, key_lanes
from ttmark.shared.watermark.schemes.watermark import Watermark

Floats = NDArray[np.float64]
Tokens = NDArray[np.int64]

WIDTH = 4
"""Tokens that vLLM's and transformers' marks look back by default."""
RATIO, BIAS = 0.25, 2.0
"""Green share and bias of transformers' `WatermarkingConfig` by default, which sbw is given too."""
_LAYERS, _TABLE = 30, 1 << 16


class FromTheFirst(ContextTracker):
    """Marks from the first token on, behind a filling; maybe where a context comes again, too."""

    def __init__(self, width: int, filling: int | None, *, marks_repeats: bool = False) -> None:
        super().__init__(1, width)
        self._filling = [] if filling is None else [filling] * width
        self._marks_repeats = marks_repeats

    def next_context(self, tokens: Sequence[int]) -> tuple[int, ...] | None:
        if self._marks_repeats:
            self._first_use.clear()
        return super().next_context([*self._filling, *tokens])


class PeerMark(Watermark):
    """A mark on single tokens of another system.

    Attributes:
        has_likelihood: whether its scores have the law of the scheme that it is built as, so that our
            likelihood ratio reads them.
    """

    has_likelihood: ClassVar[bool] = True

    def reweight(
        self, keys: Tokens, contexts: Tokens, blocks: Tokens, probs: Floats, offsets: Tokens
    ) -> Floats:
        weighted = probs.copy()
        ends = pairwise(offsets.tolist())
        for lanes, context, (start, stop) in zip(keys, contexts, ends, strict=True):
            own = probs[start:stop] / probs[start:stop].sum()
            found = self._weighted(_number(lanes), context, blocks[start:stop, 0], own)
            weighted[start:stop] = found / found.sum()
        return weighted

    def score(
        self, keys: Tokens, contexts: Tokens, blocks: Tokens, occurrences: Tokens | None = None
    ) -> Floats:
        """See `Watermark.score`; only of (context, token) pairs that did not come before."""
        if occurrences is not None:
            raise NotImplementedError("what came before is not scored")
        lanes = np.broadcast_to(keys, (len(contexts), 2))
        scores = np.empty(len(contexts))
        for one in np.unique(lanes, axis=0):
            rows = (lanes == one).all(axis=1)
            scores[rows] = self._scores(_number(one), contexts[rows], blocks[rows, 0])
        return scores

    @abstractmethod
    def own_log10_p(self, prf_key: bytes, tokens: Tokens) -> float:
        """Of a text by the other system's own detector, under the key that follows from ours."""

    @abstractmethod
    def _weighted(self, key: int, context: Tokens, tokens: Tokens, probs: Floats) -> Floats:
        """Probabilities of the candidates [N] with the mark; they need not sum to 1."""

    def _scores(self, key: int, contexts: Tokens, tokens: Tokens) -> Floats:
        """Of tokens [N] after contexts [N, H]."""
        raise NotImplementedError("the likelihood ratio does not read this mark")


def _number(lanes: Tokens) -> int:
    """A key of the other system: 62 bits, which all of them take."""
    return int(lanes[0]) & ((1 << 62) - 1) | 1


class VllmMark(PeerMark):
    """vLLM's Gumbel, with one key, or with two of which the likelihood ratio reads the first alone."""

    def __init__(self, alpha: float | None = None) -> None:
        super().__init__("gumbel", 1, WIDTH)
        self._alpha = alpha

    def tracker(self) -> ContextTracker:
        return FromTheFirst(WIDTH, -1)

    def own_log10_p(self, prf_key: bytes, tokens: Tokens) -> float:
        return VllmGumbel(_number(key_lanes(prf_key)), WIDTH, self._alpha).detect(tokens).log10_p

    def _weighted(self, key: int, context: Tokens, tokens: Tokens, probs: Floats) -> Floats:
        weighted = np.zeros(len(tokens))
        for own, share in weighted_keys(key, self._alpha):
            drawn = uniform(own, np.tile(context, (len(tokens), 1)), tokens)
            weighted[np.argmax(np.log(drawn) / probs)] += share
        return weighted

    def _scores(self, key: int, contexts: Tokens, tokens: Tokens) -> Floats:
        (own, _), *_ = weighted_keys(key, self._alpha)
        scores: Floats = -np.log1p(-uniform(own, contexts, tokens))
        return scores


class SynthidMark(PeerMark):
    """transformers' SynthID-Text."""

    def __init__(self) -> None:
        super().__init__("synthid", 1, WIDTH)

    def tracker(self) -> ContextTracker:
        return FromTheFirst(WIDTH, 0)

    def own_log10_p(self, prf_key: bytes, tokens: Tokens) -> float:
        return _synthid(_number(key_lanes(prf_key)))[0].detect(tokens).log10_p

    def _weighted(self, key: int, context: Tokens, tokens: Tokens, probs: Floats) -> Floats:
        processor = _synthid(key)[1]
        grams = np.column_stack([np.tile(context, (len(tokens), 1)), tokens])
        values = processor.sample_g_values(processor.compute_ngram_keys(torch.from_numpy(grams)[None]))
        with np.errstate(divide="ignore"):
            scores = torch.from_numpy(np.log(probs))[None]
        weighted: Floats = processor.update_scores(scores, values)[0].exp().numpy()
        return weighted

    def _scores(self, key: int, contexts: Tokens, tokens: Tokens) -> Floats:
        mark = _synthid(key)[0]
        bits: Floats = mark.bits(mark.places(np.column_stack([contexts, tokens]))).astype(np.float64)
        return np.asarray(bits.sum(axis=1))


@lru_cache(maxsize=256)
def _synthid(key: int) -> tuple[SynthIdText, Any]:
    keys = np.random.default_rng(key).integers(1 << 31, size=_LAYERS).tolist()
    processor = SynthIDTextWatermarkLogitsProcessor(WIDTH + 1, keys, _TABLE, 0, 1024, torch.device("cpu"))
    return SynthIdText(tuple(keys), WIDTH + 1, _TABLE, 0), processor


class KgwMark(PeerMark):
    """transformers' green lists, by the token before: no distribution is kept, so evidence costs quality."""

    has_likelihood = False

    def __init__(self, vocab_size: int) -> None:
        super().__init__("gumbel", 1, 1)
        self._vocab_size = vocab_size

    def tracker(self) -> ContextTracker:
        return FromTheFirst(1, None, marks_repeats=True)

    def own_log10_p(self, prf_key: bytes, tokens: Tokens) -> float:
        return Kgw(self._vocab_size, _number(key_lanes(prf_key)), RATIO).detect(tokens).log10_p

    def _weighted(self, key: int, context: Tokens, tokens: Tokens, probs: Floats) -> Floats:
        green = np.isin(tokens, self._greens(key, context))
        weighted: Floats = probs * np.exp(BIAS * green)
        return weighted

    def _greens(self, key: int, context: Tokens) -> Tokens:
        greens: Tokens = _kgw(self._vocab_size, key)._get_greenlist_ids(torch.from_numpy(context)).numpy()
        return greens


@lru_cache(maxsize=256)
def _kgw(vocab_size: int, key: int) -> WatermarkLogitsProcessor:
    """Its table for other ways of seeding alone takes long to make."""
    return WatermarkLogitsProcessor(vocab_size, "cpu", RATIO, BIAS, key, "lefthash", 1)


class SbwMark(KgwMark):
    """Green lists by the token before as `sbw` (PyPI) draws them, and its own normal p-value."""

    def own_log10_p(self, prf_key: bytes, tokens: Tokens) -> float:
        from scipy.stats import norm

        detector = _sbw(self._vocab_size, _number(key_lanes(prf_key)), detects=True)
        if tokens.size < 3:
            return 0.0
        found = detector.detect(tokenized_text=torch.from_numpy(tokens), return_prediction=False)
        return float(norm.logsf(found["z_score"]) / np.log(10.0))

    def _greens(self, key: int, context: Tokens) -> Tokens:
        batch = _sbw(self._vocab_size, key, detects=False)
        (mask,) = batch.get_greenlist_masks(torch.from_numpy(context)[None]).numpy()
        return np.flatnonzero(mask)


@lru_cache(maxsize=256)
def _sbw(vocab_size: int, key: int, *, detects: bool) -> Any:
    sbw: Any = import_module("sbw")  # in no extra: who has it is compared with it
    given = {"gamma": RATIO, "delta": BIAS, "seeding_scheme": "lefthash", "hash_key": key}
    given |= {"device": torch.device("cpu"), "vocab": list(range(vocab_size))}
    if not detects:
        return sbw.WatermarkBatch(**given)
    no_tokenizer = type("NoTokenizer", (), {"bos_token_id": None})()
    return sbw.WatermarkDetector(tokenizer=no_tokenizer, **given)


class RepeatingGumbel(Watermark):
    """Single tokens whose choice is the same wherever the four tokens before are the same."""

    def __init__(self) -> None:
        super().__init__("gumbel", 1, WIDTH)

    def tracker(self) -> ContextTracker:
        return FromTheFirst(WIDTH, 0, marks_repeats=True)


Peer = Callable[[int], PeerMark]
PEERS: dict[str, tuple[str, Peer]] = {
    "vllm": ("vLLM's Gumbel", lambda _: VllmMark()),
    "vllm-dual": ("vLLM's two keys", lambda _: VllmMark(0.1)),
    "synthid": ("transformers' SynthID-Text", lambda _: SynthidMark()),
    "kgw": ("transformers' KGW", KgwMark),
    "sbw": ("sbw's green lists", SbwMark),
}
"""Title, and the mark for a vocabulary of so many tokens."""
