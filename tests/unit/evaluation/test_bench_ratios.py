"""Ratios between the systems of one benchmark run."""

from ttmark.evaluation.bench.workload import STRICT, Measurement, Rates, Workload, ratio_table


def measured(system: str, rate: float | None, workload: Workload) -> Measurement:
    if rate is None:
        return Measurement(system, workload, error="no answer")
    return Measurement(system, workload, Rates(per_second=1.0, per_cpu_second=rate))


def test_ours_is_compared_with_what_ran_under_the_same_load_and_filters_by_cpu_time() -> None:
    paper, strict = Workload(8, 4), Workload(8, 4, filters=dict(STRICT))
    table = ratio_table(
        [
            measured("ours, no watermark", 400.0, paper),
            measured("ours, r = 2", 100.0, paper),
            measured("ours, r = 2, b = 4", 300.0, paper),
            measured("transformers generate", 200.0, paper),
            measured("transformers generate, SynthID", 20.0, paper),
            measured("vLLM", 160.0, paper),
            measured("transformers generate", None, strict),
            measured("ours, no watermark", 50.0, strict),
            measured("ours, r = 2", 45.0, strict),
        ]
    )
    assert table.rows == (
        ("8", "(50, 0.95, 1)", "ours, no watermark", "1.00", "2.00", "20.00", "2.50"),
        ("8", "(50, 0.95, 1)", "ours, r = 2", "0.25", "0.50", "5.00", "0.62"),
        ("8", "(50, 0.95, 1)", "ours, r = 2, b = 4", "0.75", "1.50", "15.00", "1.88"),
        ("8", "(20, 0.8, 0.7)", "ours, no watermark", "1.00", "", "", ""),
        ("8", "(20, 0.8, 0.7)", "ours, r = 2", "0.90", "", "", ""),
    )
