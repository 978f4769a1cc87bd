"""The page of an attack report, for readers who decide: first where the mark fails, then all rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ttmark.evaluation.adversaries.catalogue import FORGING, KINDS
from ttmark.evaluation.conformance.attacks import UNMARKED, UNTOUCHED
from ttmark.evaluation.conformance.figures import Figure
from ttmark.evaluation.conformance.html import (
    bullets,
    figure_cell,
    figures_table,
    made_with,
    share,
)
from ttmark.evaluation.report.result import groups, rate_name
from ttmark.shared.cases.signed_page import definitions, whole_page

FAILS, WEAKENED, HOLDS = (
    "The mark fails against these",
    "These weaken the mark",
    "The mark holds against these, as strong as they were tried",
)
FORGED = "Forged texts that the detector takes for the model's"
LEFT, LOST = 0.9, 0.5
"""Of the share that is found of unedited texts: with less the mark is weakened, or fails."""
_NOT_MEASURED = "not measured"

METHODS = (
    "Every text is attacked by every attack at every strength, with randomness of its own that follows from"
    " the seed. A model rewrites the first texts alone, and questions are asked about them alone; the column"
    " of texts says how many.",
    "A text is found at a rate where its p-value is at most the rate. At 1e-5 one text in 100,000 that"
    " carries no mark is found by mistake, at 1e-2 one in 100.",
    "Brackets are exact 95 % intervals (Clopper-Pearson) over texts; those of means are bootstrap ones."
    " Rows share texts and are not independent of each other.",
    f"The mark fails where fewer than {LOST:.0%} are found of what is found unedited, and is weakened where"
    f" fewer than {LEFT:.0%} are, at the smaller rate. Of an attack the weakest strength is named.",
    "Words kept: the share of the words that are left in their order, in the text as its reader sees it."
    " Meaning: the cosine between the vectors of a small encoder, 1 for the same text; texts on other"
    " subjects are near 0. Perplexity: of a language model; the first row has that of unedited texts.",
)
LIMITS = (
    "An attack that is not in this report may do better than those that are. People who rewrite by hand, and"
    " models that are larger than the one that was asked, are such attacks.",
    "That a mark is gone is worth something only to somebody who can use what is left: read the columns of"
    " quality beside it. They are measures of programs, not judgements of readers.",
    "The texts are those that were given. Short texts, code, tables and translations carry less of a mark.",
    "The signature says who vouches for the report. It does not say that the detector was the deployed one.",
)
NEVER_RUN = (
    "Not run: a model that is trained or steered by thousands of stolen answers so that it writes texts with"
    " this mark. Stitched texts are the forgery that needs no model."
)


@dataclass(frozen=True, slots=True)
class _Line:
    """A stored row and its figures, the smallest rate last."""

    row: Mapping[str, Any]
    figures: Sequence[Figure]

    @property
    def share(self) -> float:
        """Found at the smallest rate."""
        return self.figures[-1].interval.estimate


def attacks_page(report: Mapping[str, Any]) -> tuple[str, str]:
    """The page before and after the data that `SignedKind.page` puts into it."""
    figures = [Figure.of_stored(one) for one in report["figures"]]
    lines = [
        _Line(row, [one for one in figures if (one.section, one.name) == (row["kind"], row["name"])])
        for row in report["attacks"]
    ]
    title = f"What attacks leave of the mark of {report['subject']}"
    parts = [f"<h1>{escape(title)}</h1>", *_facts(report), *_summary(lines)]
    for kind in (UNTOUCHED, UNMARKED, *KINDS, FORGING):
        parts += _table(kind, [line for line in lines if line.row["kind"] == kind])
    limits = [*LIMITS, NEVER_RUN, *report["left_out"]]
    parts += ["<h2>Methods</h2>", bullets(METHODS), "<h2>Limits</h2>", bullets(limits)]
    made_of = {**made_with(report), "Texts, SHA-256": report["texts"]["sha256"], **report["tools"]}
    parts += ["<h2>What it was made of</h2>", definitions(made_of)]
    return whole_page(title, parts)


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


def _facts(report: Mapping[str, Any]) -> Iterator[str]:
    yield definitions(
        {
            "Of": report["subject"],
            "Texts": f"{report['texts']['texts']:,}: {report['texts']['origin']}",
            "Detector": ", ".join(f"{name} {value}" for name, value in report["detector"].items()),
            "Made": f"{report['made_at']} by ttmark {report['release']}, seed {report['seed']}",
            "Signed with": report["signing_key"],
        }
    )


def _summary(lines: Sequence[_Line]) -> Iterator[str]:
    for verdict, of in verdicts(lines).items():
        yield f"<h2>{verdict}</h2>"
        yield bullets([in_words(line) for line in of] or ["None of those that were tried."])
        if verdict == FAILS:
            for title, kinds in (("Without an attack", (UNTOUCHED, UNMARKED)), (FORGED, (FORGING,))):
                if shown := [in_words(line) for line in lines if line.row["kind"] in kinds]:
                    yield f"<h2>{title}</h2>"
                    yield bullets(shown)


def in_words(line: _Line) -> str:
    """A row as a sentence."""
    coarse, fine = line.figures[0], line.figures[-1]
    title = line.row["name"]
    said = (
        f"{title[:1].upper()}{title[1:]}: {fine.found} of {fine.texts} texts are found at one false alarm in"
        f" {1 / fine.rate:,.0f} ({share(fine)}), {coarse.found} at one in {1 / coarse.rate:,.0f}."
    )
    kept, cost = line.row["kept"], line.row["cost"]
    if not cost:
        return said
    if kept is None:
        return f"{said} It costs {cost}."
    meaning = kept["similarity"]
    left = f"{kept['words']['estimate']:.0%} of the words are left" + (
        f", the meaning by {meaning['estimate']:.2f} of 1" if meaning else ""
    )
    return f"{said} {left[0].upper()}{left[1:]}. It costs {cost}."


def _table(kind: str, lines: Sequence[_Line]) -> Iterator[str]:
    if not lines:
        return
    yield f"<h2>{escape(kind[:1].upper() + kind[1:])}</h2>"
    heads = [f"at {rate_name(one.rate)}" for one in lines[0].figures]
    rows = (
        (
            line.row["name"],
            line.figures[0].texts,
            "".join(map(figure_cell, line.figures)) + _quality(line.row["kept"]),
        )
        for line in lines
    )
    yield from figures_table("texts", [*heads, "words kept", "meaning", "perplexity"], rows)


def _quality(kept: Mapping[str, Any] | None) -> str:
    shown = []
    for name, form in (("words", "{:.0%}"), ("similarity", "{:.2f}"), ("perplexity", "{:,.0f}")):
        one = kept[name] if kept else None
        said = f"{form} [{form}, {form}]".format(*one.values()) if one else _NOT_MEASURED
        shown.append(f"<td>{said}</td>")
    return "".join(shown)
