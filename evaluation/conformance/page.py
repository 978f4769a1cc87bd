"""The page of a conformance report: tables whose rows draw their intervals, methods, limits, hashes."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ttmark.evaluation.conformance.answer_language import NAMES
from ttmark.evaluation.conformance.figures import Figure
from ttmark.evaluation.conformance.html import (
    bullets,
    figure_cell,
    figures_table,
    made_with,
    percent,
    share,
)
from ttmark.evaluation.conformance.measure import (
    ALL,
    DEPLOYED_SECTION,
    EDIT,
    FRESH_SECTION,
    KIND,
    LANGUAGE,
    LENGTH,
    SAMPLING,
)
from ttmark.evaluation.conformance.page_words import ABOUT, LIMITS, METHODS
from ttmark.evaluation.report.result import groups, rate_name
from ttmark.shared.cases.signed_page import definitions, whole_page
from ttmark.shared.languages.words import counted

_SCALE_ROOM = 1.1


def page_parts(report: Mapping[str, Any]) -> tuple[str, str]:
    """The page before and after the data that `SignedKind.page` puts into it."""
    figures = [Figure.of_stored(one) for one in report["figures"]]
    key, model = report["key"], report["model"]
    title = f"Error rates of key {key['key_id']} on {model['name']}"
    parts = [f"<h1>{escape(title)}</h1>", *_facts(report), *_summary(figures)]
    for section in (FRESH_SECTION, DEPLOYED_SECTION, SAMPLING, LENGTH, KIND, LANGUAGE, EDIT):
        rows = [one for one in figures if one.section == section]
        parts += _section(section, rows)
        if section == LANGUAGE:
            parts += _spoken(report["spoken"])
    parts += ["<h2>Methods</h2>", bullets(METHODS), "<h2>Limits</h2>", bullets(LIMITS)]
    parts += ["<h2>What it was made of</h2>", *_provenance(report)]
    return whole_page(title, parts)


def _facts(report: Mapping[str, Any]) -> Iterator[str]:
    key = report["key"]
    versions = ", ".join(f"{one['version']} ({one['state']})" for one in key["versions"])
    yield definitions(
        {
            "Key": f"{key['key_id']} of tenant {key['tenant']}; versions: {versions}",
            "Profile": f"{key['profile_id']}, a pool of {counted(key['pool'], 'key')}",
            "Model": report["model"]["name"],
            "Made": f"{report['made_at']} by ttmark {report['release']}, size {report['size']},"
            f" seed {report['seed']}",
            "Signed with": report["signing_key"],
        }
    )


def _summary(figures: Sequence[Figure]) -> Iterator[str]:
    yield "<h2>In short</h2>"
    lines: list[str] = []
    for section, whose in ((FRESH_SECTION, "fresh keys"), (DEPLOYED_SECTION, "the deployed key")):
        lines += [
            f"False positives under {whose}, promised at most {rate_name(one.rate)}:"
            f" {one.found:,} of {one.texts:,}, {share(one)}. {promise_kept(one)}"
            for one in figures
            if one.section == section and one.name == ALL
        ]
    lines += [
        f"Unedited answers, sampling {one.name}: {share(one)} are found at {rate_name(one.rate)}"
        f" ({one.found:,} of {one.texts:,})."
        for one in figures
        if one.section == SAMPLING
    ]
    yield bullets(lines)


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


def _section(section: str, rows: Sequence[Figure]) -> Iterator[str]:
    heading, about = ABOUT[section]
    yield f"<h2>{escape(heading)}</h2>"
    yield f"<p>{escape(about)}</p>"
    rates = list(dict.fromkeys(one.rate for one in rows))
    is_false = section in (FRESH_SECTION, DEPLOYED_SECTION)
    ends = {
        rate: max(one.interval.high for one in rows if one.rate == rate) * _SCALE_ROOM if is_false else 1.0
        for rate in rates
    }
    heads = [
        f"at {rate_name(rate)}" + (f", axis to {percent(ends[rate])} %" if is_false else "") for rate in rates
    ]
    shown = (
        (name, of[0].texts, "".join(figure_cell(one, ends[one.rate], promised=is_false) for one in of))
        for name, of in groups(rows, lambda one: one.name).items()
    )
    yield from figures_table("questions" if is_false else "texts", heads, shown)


def _spoken(spoken: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    lines = [
        f"{NAMES[code]}: {counts['answers_in_it']} of {counts['answers']} answers"
        for code, counts in spoken.items()
    ]
    yield "<p>Answers that are in the language of their question, by a rough count of function words:</p>"
    yield bullets(lines)


def _provenance(report: Mapping[str, Any]) -> Iterator[str]:
    model = report["model"]
    yield definitions(
        {
            **made_with(report, f"; {report['answer_tokens']:,} tokens of marked answers"),
            "Generation": ", ".join(f"{name} {value}" for name, value in model["served"].items()),
            "Detection": ", ".join(f"{name} {value}" for name, value in report["detection"].items()),
            "Profile": report["key"]["profile"],
            "Tokenizer": model["tokenizer_fingerprint"],
            "Prompts": report["prompts_sha256"],
            "Null tables": report["null_tables_sha256"],
        }
    )
    hashes = "".join(
        f"<tr><td>{escape(name)}</td><td><code>{value}</code></td></tr>"
        for name, value in model["files"].items()
    )
    yield f"<h3>Files of the model, SHA-256</h3><table><tbody>{hashes}</tbody></table>"
    sets = "".join(
        f"<tr><td>{escape(one['name'])}</td><td>{one['texts']:,}: {escape(one['origin'])}"
        f"<br><code>{one['sha256']}</code></td></tr>"
        for one in report["sets"]
    )
    yield f"<h3>Texts without a mark, SHA-256</h3><table><tbody>{sets}</tbody></table>"
