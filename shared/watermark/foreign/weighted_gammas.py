"""The upper tail of a weighted sum of two gamma variables, as a natural logarithm."""

import math

import numpy as np

from ttmark.shared.watermark.tails import log_gamma_tail


def log_weighted_gamma_tail(threshold: float, shape: int, first: float, second: float) -> float:
    """ln P(first X + second Y >= threshold) for independent X, Y ~ Gamma(shape, 1), positive weights.

    Counted in the smaller weight, the other term is a gamma variable of shape `shape + K` with K negative
    binomial, so that the tail is a mixture of gamma tails of whole shapes. There are as many terms as `shape`
    times the ratio of the weights, and some; those left out add nothing to 15 digits.
    """
    if threshold <= 0.0:
        return 0.0
    wide, narrow = max(first, second), min(first, second)
    if wide == narrow:
        return log_gamma_tail(threshold / narrow, 2 * shape)
    ratio, reduced = narrow / wide, threshold / narrow
    # Beyond it the negative binomial falls by more than the gamma tail, which is 1 there, can make up for.
    last = int(max(4.0 * reduced, 4.0 * shape / ratio) + 80.0 / ratio)
    more = np.arange(last + 1)
    log_choices = np.log((shape - 1 + more[1:]) / more[1:])
    log_weights = shape * math.log(ratio) + more * math.log1p(-ratio)
    log_weights[1:] += np.cumsum(log_choices)
    events = np.arange(2 * shape + last)
    log_poisson = events * math.log(reduced) - reduced
    log_poisson[1:] -= np.cumsum(np.log(events[1:]))
    log_tails = np.logaddexp.accumulate(log_poisson)[2 * shape - 1 :]
    terms = log_weights + np.minimum(log_tails, 0.0)
    largest = float(terms.max())
    return min(0.0, largest + math.log(float(np.exp(terms - largest).sum())))
