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
from ttmark.evaluation.quality.equivalence import Margin
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
    parts += quality_section(report["quality"])
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


def quality_section(verdicts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The verdicts of a report, as `Verdict.stored` wrote them."""
    yield "<h2>Quality: marked answers beside unmarked ones</h2>"
    yield f"<p>{escape(QUALITY)}</p>"
    lines = []
    for one in verdicts:
        of = one["difference"]
        margin = Margin(**of["margin"])
        ends = " to ".join(margin.shown(one[end]) for end in ("low", "high"))
        lines.append(
            f"{margin.measure}: {one['verdict']}. Without a mark {margin.shown(of['unmarked'])}, difference"
            f" {margin.shown(of['difference'])} (95 %: {ends}), margin {margin.shown(one['bound'])},"
            f" {counted(of['pairs'], 'pair')}."
        )
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


ABOUT: Mapping[str, tuple[str, str]] = {
    FRESH_SECTION: (
        "False positives under fresh keys",
        "The promise is about keys: a text without a mark is found with at most this probability under a key"
        " that had no part in it. Each question is one text under a key of its own with the deployed profile."
        " The questions are independent, so the interval means what it says. The stroke is what is promised.",
    ),
    DEPLOYED_SECTION: (
        "False positives under the deployed key",
        "The same texts under the one key in use. Texts that share phrases share their luck with this key,"
        " so the figures are about texts like these and spread more than the intervals say.",
    ),
    SAMPLING: (
        "Found: unedited answers, by sampling",
        "Answers in all languages and kinds as the service gives them, ended by the model or at the most"
        " tokens of this size.",
    ),
    LENGTH: (
        "Found: by length",
        "Beginnings of the same answers, of those that are so long, read again as text.",
    ),
    KIND: ("Found: by kind of text", "Whole answers to English prompts at the chat sampling."),
    LANGUAGE: ("Found: by language", "Whole prose answers at the chat sampling, by the language asked in."),
    EDIT: (
        "Found: after edits",
        "All answers at the chat sampling in languages that are written with spaces, edited by a program.",
    ),
}

QUALITY = (
    "Answers at the chat sampling to the same prompts. Equivalent: two one-sided tests at 5 %, with the"
    " margin that is named. Changed: not equivalent, and different at 5 %. Both are corrected for the"
    " number of measures (Holm); prompts are clusters. Undecided: so many answers show with 90 % power"
    " that nothing changes, if that is so. `ttmark eval quality` measures more."
)

METHODS: Sequence[str] = (
    "The answers were made by the engine of the generation service with its settings, the model's"
    " chat template, the primary version of the deployed key and its pool. An end of text ends them.",
    "Every question went through the code of POST /v1/detect, naming one key, without a reader: the"
    " text as it is and normalised, all versions and keys of the pool corrected for. A text is found at"
    " a rate where its p-value is at most the rate.",
    "Brackets are exact 95 % intervals (Clopper-Pearson) over texts. One in twenty does not hold the"
    " true rate.",
    "Tables share texts: a text of one row is, cut or edited, in others. Rows are not independent of"
    " each other.",
    "Edits of words: one third each are replaced, deleted, or followed by a new word. Other words are"
    " from the English articles by people. Look-alikes, zero-width spaces and retyping change the"
    " whole text.",
    "Seeds: prompts and sampling are fixed by the seed, the key and the engine's numbers. Another"
    " seed gives other answers, other passages and other fresh keys.",
)

LIMITS: Sequence[str] = (
    "No figure is about paraphrase, translation or rewriting by another model, or by people. Such"
    " edits remove more than those measured here.",
    "The prompts are the project's own: ten for each kind and language, and repeated. They are not"
    " your traffic.",
    "A language that the model hardly speaks is measured on the text that it then writes, often in"
    " another language or in circles. See the count of answers below the table.",
    "Detection depends on how much choice the model has. Low temperatures, short answers, tables and"
    " code carry less of a mark. Greedy answers carry none and are not in these figures.",
    "People's texts that ship are English prose, documentation and code. False positives on other"
    " texts are in this report where the operator gave such texts.",
    "The promise is over keys. A deployed key can be unlucky with a phrase that occurs in many texts;"
    " then they are found together.",
    "A question that names no key tries all keys of its tenant and corrects for them; that finds a"
    " little less.",
    "The signature says who vouches for the report. It does not say that the command ran on the"
    " deployed service: compare key, profile and hashes of the model.",
)
