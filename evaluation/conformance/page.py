"""The page of a conformance report: what `templates/conformance.html` shows of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ttmark.evaluation.adversaries.catalogue import FORGING, KINDS
from ttmark.evaluation.conformance.answer_language import NAMES
from ttmark.evaluation.conformance.attacks import UNMARKED, UNTOUCHED
from ttmark.evaluation.conformance.figures import Figure
from ttmark.evaluation.conformance.measure import ALL, DEPLOYED_SECTION, FRESH_SECTION, SAMPLING
from ttmark.evaluation.quality.equivalence import Margin
from ttmark.evaluation.report import groups, rate_name
from ttmark.evaluation.run_manifest import in_words
from ttmark.shared.languages.words import counted
from ttmark.shared.signed_files.signed_file import whole_page


def made_with(report: Mapping[str, Any], more: str = "") -> dict[str, str]:
    return {
        "Command": report["command"],
        "Time": f"{report['seconds']:,.0f} s of this command{more}",
        "Machine": f"{in_words(report['machine'])}, {report['machine']['system']}",
        "Versions": named(report["versions"]),
    }


def named(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def percent(share: float) -> str:
    """A share in percent with as many digits as small ones need."""
    value = 100 * share
    return f"{value:.1f}" if value >= 1 or value == 0 else f"{value:.2g}"


def share(one: Figure) -> str:
    interval = one.interval
    return f"{percent(interval.estimate)}\u00a0% [{percent(interval.low)}, {percent(interval.high)}]"


def page(template: str, title: str, **values: object) -> tuple[str, str]:
    """The page before and after the data that `SignedKind.page` puts into it."""
    pages = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.globals.update(
        capital=lambda text: text[:1].upper() + text[1:],
        counted=counted,
        made_with=made_with,
        named=named,
        rate_name=rate_name,
        share=share,
        thousands="{:,.0f}".format,
    )
    return whole_page(title, [pages.get_template(template).render(title=title, **values)])


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


FAILS, WEAKENED, HOLDS = (
    "The mark fails against these",
    "These weaken the mark",
    "The mark holds against these, as strong as they were tried",
)
LEFT, LOST = 0.9, 0.5
"""Of the share that is found of unedited texts: with less the mark is weakened, or fails."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A stored row and its figures, the smallest rate last."""

    row: Mapping[str, Any]
    figures: Sequence[Figure]

    @property
    def share(self) -> float:
        return self.figures[-1].interval.estimate


def attacks_page(report: Mapping[str, Any]) -> tuple[str, str]:
    """The page before and after the data that `SignedKind.page` puts into it."""
    figures = [Figure.of_stored(one) for one in report["figures"]]
    lines = [
        _Line(row, [one for one in figures if (one.section, one.name) == (row["kind"], row["name"])])
        for row in report["attacks"]
    ]
    kinds = {
        kind: [line for line in lines if line.row["kind"] == kind]
        for kind in (UNTOUCHED, UNMARKED, *KINDS, FORGING)
    }
    return page(
        "attacks.html",
        f"What attacks leave of the mark of {report['subject']}",
        report=report,
        verdicts=verdicts(lines),
        unattacked=[line for line in lines if line.row["kind"] in (UNTOUCHED, UNMARKED)],
        forged=kinds[FORGING],
        kinds=kinds,
        heads=lambda lines: [f"at {rate_name(one.rate)}" for one in lines[0].figures],
        rows=lambda lines: [(line.row["name"], line.figures, line.row) for line in lines],
        left=LEFT,
        lost=LOST,
    )


def verdicts(lines: Sequence[_Line]) -> dict[str, list[_Line]]:
    """By what the attacks do to the mark: of each attack the weakest strength that does it.

    Those that fail come with the best text first: what an attacker would choose.
    """
    base = next(line for line in lines if line.row["kind"] == UNTOUCHED)
    by_attack = groups((line for line in lines if line.row["kind"] in KINDS), lambda line: line.row["attack"])
    found: dict[str, list[_Line]] = {FAILS: [], WEAKENED: [], HOLDS: []}
    for strengths in by_attack.values():
        for verdict, least in ((FAILS, LOST), (WEAKENED, LEFT)):
            below = [line for line in strengths if line.share < least * base.share]
            if below:
                found[verdict].append(below[0])
                break
        else:
            found[HOLDS].append(strengths[-1])
    found[FAILS].sort(key=lambda line: -_goodness(line.row))
    return found


def _goodness(row: Mapping[str, Any]) -> float:
    kept = row["kept"]
    return float((kept["similarity"] or kept["words"])["estimate"])
