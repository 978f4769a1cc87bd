"""The page of a conformance report: what `templates/conformance.html` shows of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ttmark.evaluation.conformance.answer_language import NAMES
from ttmark.evaluation.conformance.figures import Figure
from ttmark.evaluation.conformance.html import page, percent, share
from ttmark.evaluation.conformance.measure import ALL, DEPLOYED_SECTION, FRESH_SECTION, SAMPLING
from ttmark.evaluation.quality.equivalence import Margin
from ttmark.evaluation.report.result import groups, rate_name
from ttmark.shared.languages.words import counted

_SCALE_ROOM = 1.1


def page_parts(report: Mapping[str, Any]) -> tuple[str, str]:
    """The page before and after the data that `SignedKind.page` puts into it."""
    figures = [Figure.of_stored(one) for one in report["figures"]]
    spoken = report["spoken"].items()
    return page(
        "conformance.html",
        f"Error rates of key {report['key']['key_id']} on {report['model']['name']}",
        report=report,
        versions=", ".join(f"{one['version']} ({one['state']})" for one in report["key"]["versions"]),
        summary=list(_summary(figures)),
        shown_of=lambda section: _shown(section, [one for one in figures if one.section == section]),
        spoken=[f"{NAMES[code]}: {of['answers_in_it']} of {of['answers']} answers" for code, of in spoken],
        quality=list(map(in_a_line, report["quality"])),
    )


def _summary(figures: Sequence[Figure]) -> Iterator[str]:
    for section, whose in ((FRESH_SECTION, "fresh keys"), (DEPLOYED_SECTION, "the deployed key")):
        for one in figures:
            if one.section == section and one.name == ALL:
                yield (
                    f"False positives under {whose}, promised at most {rate_name(one.rate)}:"
                    f" {one.found:,} of {one.texts:,}, {share(one)}. {promise_kept(one)}"
                )
    for one in figures:
        if one.section == SAMPLING:
            yield (
                f"Unedited answers, sampling {one.name}: {share(one)} are found at {rate_name(one.rate)}"
                f" ({one.found:,} of {one.texts:,})."
            )


def promise_kept(one: Figure) -> str:
    """What a count of false positives says about the promised rate."""
    interval = one.interval
    if interval.low > one.rate:
        return "This is more than promised."
    if interval.high <= one.rate:
        return "This shows that the promise is kept here."
    return (
        "This agrees with the promise; so few questions cannot show a rate below"
        f" {percent(interval.high)}\u00a0%."
    )


def _shown(section: str, figures: Sequence[Figure]) -> dict[str, Any]:
    """A section's table: false positives are drawn on an axis of their own at each rate, with the promise."""
    promised = section in (FRESH_SECTION, DEPLOYED_SECTION)
    ends, heads = {}, []
    for rate, of_rate in groups(figures, lambda one: one.rate).items():
        ends[rate] = max(one.interval.high for one in of_rate) * _SCALE_ROOM if promised else 1.0
        heads.append(f"at {rate_name(rate)}" + (f", axis to {percent(ends[rate])} %" if promised else ""))
    rows = [(name, of_name, None) for name, of_name in groups(figures, lambda one: one.name).items()]
    unit = "questions" if promised else "texts"
    return {"unit": unit, "heads": heads, "rows": rows, "ends": ends, "promised": promised}


def in_a_line(verdict: Mapping[str, Any]) -> str:
    """A verdict about quality, as `Verdict.stored` wrote it."""
    of = verdict["difference"]
    margin = Margin(**of["margin"])
    ends = " to ".join(margin.shown(verdict[end]) for end in ("low", "high"))
    return (
        f"{margin.measure}: {verdict['verdict']}. Without a mark {margin.shown(of['unmarked'])}, difference"
        f" {margin.shown(of['difference'])} (95 %: {ends}), margin {margin.shown(verdict['bound'])},"
        f" {counted(of['pairs'], 'pair')}."
    )
