"""Watermarks of other systems, read as their own detectors read them, with exact p-values; no torch."""

from ttmark.shared.watermark.foreign.foreign_mark import ForeignEvidence, ForeignMark, ScoredText
from ttmark.shared.watermark.foreign.kgw import Kgw
from ttmark.shared.watermark.foreign.sglang_gumbel import SglangGumbel
from ttmark.shared.watermark.foreign.synthid_text import SynthIdText
from ttmark.shared.watermark.foreign.vllm_gumbel import VllmGumbel

__all__ = ["ForeignEvidence", "ForeignMark", "Kgw", "ScoredText", "SglangGumbel", "SynthIdText", "VllmGumbel"]
