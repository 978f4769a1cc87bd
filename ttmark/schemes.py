"""What a watermarking scheme of another package is made of (docs/tutorials/add-a-scheme.md)."""

from ttmark.shared.watermark.nulls import BinomialNull, ExponentialNull, Null
from ttmark.shared.watermark.ragged_arrays import Segments
from ttmark.shared.watermark.schemes.base import Scheme

__all__ = ["BinomialNull", "ExponentialNull", "Null", "Scheme", "Segments"]
