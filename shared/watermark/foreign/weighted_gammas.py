"""The upper tail of a weighted sum of two gamma variables, as a natural logarithm."""

import math

import numpy as np

from ttmark.shared.watermark.pauses import STEPS, pause
from ttmark.shared.watermark.tails import log_gamma_tail

_NOTHING = 45.0
"""What is smaller than a sum by this logarithm, some hundred times, changes none of 15 digits."""


def log_weighted_gamma_tail(threshold: float, shape: int, first: float, second: float) -> float:
    """ln P(first X + second Y >= threshold) for independent X, Y ~ Gamma(shape, 1), positive weights.

    Counted in the smaller weight, the other term is a gamma variable of shape `shape + K` with K negative
    binomial, so that the tail is a mixture of gamma tails of whole shapes. There are about as many terms as
    `shape` times the ratio of the weights; those left out add nothing to 15 digits.
    """
    if threshold <= 0.0:
        return 0.0
    wide, narrow = max(first, second), min(first, second)
    if wide == narrow:
        return log_gamma_tail(threshold / narrow, 2 * shape)
    ratio, reduced = narrow / wide, threshold / narrow
    mean = shape * (1.0 - ratio) / ratio
    # Of K = 0: its probability, the tail of shape 2 * shape, and the Poisson term that the tail ends with.
    log_weight, log_tail = shape * math.log(ratio), log_gamma_tail(reduced, 2 * shape)
    log_event = (2 * shape - 1) * math.log(reduced) - reduced - math.lgamma(2 * shape)
    total, done = log_weight + log_tail, 0
    # Twice beyond the mean each weight is a fixed share of the one before.
    while done < 2.0 * mean or log_weight > total - _NOTHING:
        pause()
        more = np.arange(done + 1, done + STEPS + 1)
        log_weights = log_weight + np.cumsum(np.log((shape - 1 + more) / more) + math.log1p(-ratio))
        log_events = log_event + np.cumsum(math.log(reduced) - np.log(2 * shape - 1 + more))
        log_tails = np.logaddexp.accumulate(np.concatenate([[log_tail], log_events]))[1:]
        terms = log_weights + np.minimum(log_tails, 0.0)
        total = float(np.logaddexp(total, np.logaddexp.reduce(terms)))
        log_weight, log_event, log_tail = (float(each[-1]) for each in (log_weights, log_events, log_tails))
        done += STEPS
    return min(0.0, total)
