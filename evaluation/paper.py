"""The figures of the paper, for a column beside ours."""

from dataclasses import dataclass

from ttmark.shared.watermark.schemes.registry import scheme_title


def row_name(scheme: str | None, block_size: int) -> str:
    """A row's name as the paper's tables have it."""
    if scheme is None:
        return "no watermark"
    if block_size == 1:
        return scheme_title(scheme)
    return f"+ TTMark {block_size}-token"


@dataclass(frozen=True, slots=True)
class DirectFigures:
    """Direct detection: TPR at FPR 1e-3, 1e-4, 1e-5, and the median p-value."""

    tpr: tuple[float, float, float]
    median_p: float


DIRECT = {
    ("dipmark", 1, 200): DirectFigures((0.470, 0.328, 0.239), 1.89e-3),
    ("dipmark", 2, 200): DirectFigures((0.683, 0.589, 0.472), 2.01e-5),
    ("dipmark", 3, 200): DirectFigures((0.770, 0.708, 0.630), 1.43e-7),
    ("synthid", 1, 200): DirectFigures((0.718, 0.605, 0.503), 9.59e-6),
    ("synthid", 2, 200): DirectFigures((0.875, 0.795, 0.732), 5.79e-10),
    ("synthid", 3, 200): DirectFigures((0.928, 0.877, 0.826), 3.81e-14),
    ("mcmark", 1, 200): DirectFigures((0.734, 0.625, 0.540), 3.86e-6),
    ("mcmark", 2, 200): DirectFigures((0.920, 0.857, 0.818), 1.84e-11),
    ("mcmark", 3, 200): DirectFigures((0.934, 0.905, 0.870), 9.08e-15),
    ("dipmark", 1, 400): DirectFigures((0.738, 0.612, 0.468), 1.63e-5),
    ("dipmark", 2, 400): DirectFigures((0.945, 0.886, 0.817), 4.03e-10),
    ("dipmark", 3, 400): DirectFigures((0.987, 0.962, 0.930), 6.42e-14),
    ("synthid", 1, 400): DirectFigures((0.929, 0.865, 0.801), 1.73e-9),
    ("synthid", 2, 400): DirectFigures((0.993, 0.985, 0.977), 8.25e-18),
    ("synthid", 3, 400): DirectFigures((0.999, 0.996, 0.986), 6.84e-26),
    ("mcmark", 1, 400): DirectFigures((0.954, 0.913, 0.835), 2.00e-10),
    ("mcmark", 2, 400): DirectFigures((0.996, 0.990, 0.985), 9.36e-21),
    ("mcmark", 3, 400): DirectFigures((0.998, 0.995, 0.995), 1.16e-27),
}
"""Tables 1 and 7 by scheme, block size and length: Llama-3.2-3B-Instruct on C4."""

STRICT = {
    ("dipmark", 1): DirectFigures((0.09, 0.02, 0.00), 1.86e-1),
    ("dipmark", 2): DirectFigures((0.18, 0.09, 0.02), 3.46e-2),
    ("synthid", 1): DirectFigures((0.21, 0.14, 0.08), 1.46e-2),
    ("synthid", 2): DirectFigures((0.52, 0.36, 0.20), 7.96e-4),
    ("mcmark", 1): DirectFigures((0.26, 0.13, 0.05), 1.27e-2),
    ("mcmark", 2): DirectFigures((0.58, 0.41, 0.28), 2.82e-4),
}
"""Table 2, 200 tokens: Qwen2.5-7B-Instruct on MMW Book Report, 1.37 to 1.93 candidates."""

EDITS = {
    ("dipmark", 1): (0.594, 0.346, 0.9320),
    ("dipmark", 2): (0.698, 0.507, 0.9449),
    ("synthid", 1): (0.722, 0.590, 0.9529),
    ("synthid", 2): (0.800, 0.723, 0.9570),
    ("mcmark", 1): (0.755, 0.619, 0.9587),
    ("mcmark", 2): (0.880, 0.807, 0.9759),
}
"""Table 3, rephrasing of 30 %: TPR at FPR 1 % and 0.1 %, AUROC."""

LOCALIZED = {
    ("dipmark", 1): (0.000, 0.543, 0.627, 0.351),
    ("dipmark", 2): (0.000, 0.277, 0.839, 0.590),
    ("synthid", 1): (0.017, 0.230, 0.862, 0.618),
    ("synthid", 2): (0.010, 0.050, 0.969, 0.785),
    ("mcmark", 1): (0.006, 0.210, 0.879, 0.618),
    ("mcmark", 2): (0.003, 0.070, 0.962, 0.750),
}
"""Table 4, Llama-3.2-3B-Instruct: FPR, FNR, F1, IoU."""
