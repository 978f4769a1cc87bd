"""A run's results as pages: one for experiments that belong together, and one that lists them."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from inspect import cleandoc
from pathlib import Path

from ttmark.evaluation.experiments.registry import EXPERIMENTS
from ttmark.evaluation.report.result import Result, groups
from ttmark.evaluation.run_manifest import Manifest, in_words
from ttmark.shared.whole_file import AS_UMASK_SAYS, write_whole

SETTLED = {
    "stealing": (
        "Stealing a key",
        "Forgeries from a victim's completions and the public model, detected with the real key.",
    ),
    "peers": (
        "Beside other systems",
        "Power, edits, diversity and loss of our watermarks beside those of transformers and vLLM.",
    ),
    "diversity": (
        "Different answers under the default key",
        "Many answers to the same prompts: how many differ under the default key, its pool and its opening?",
    ),
    "repeated": (
        "Repeated queries",
        "Many completions of the same prompts under one key: how alike are they?",
    ),
    "widths": (
        "Repeated queries by context width",
        "The same with other context widths, and so longer or shorter warm-ups.",
    ),
    "retokenisation": (
        "Texts read as other tokens",
        "Texts that are decoded and encoded again, and what each mode of detection makes of them.",
    ),
    "cost": (
        "Power against cost",
        "Detection power against rows of forward passes, by scheme, block size, branch budget and layers.",
    ),
    "averaging": (
        "Answers mixed",
        "What is found of texts mixed from several answers to one prompt, under one key or a pool of 16.",
    ),
    "gains": (
        "Where the gains come from",
        "Where the gains of blocks come from: scores, coverage, and the bounds of Theorems 1 and 2.",
    ),
    "kinds": (
        "Languages and kinds of text",
        "Prose and most other languages are found; code, lists and JSON often are not.",
    ),
    "frontier": (
        "Which profile",
        "Power, diversity, loss by edits and cost of the profiles that a deployment may choose between.",
    ),
    "scrubbing": (
        "Scrubbing and lies",
        "What is still found after edits of every kind ([in short](../adversaries.md)), and after lies are"
        " put into a marked text.",
    ),
    "oracle": (
        "Asking the detector",
        "Removal and forgery with questions to a detector that shows scores, a p-value, a verdict or"
        " nothing ([in short](../adversaries.md)).",
    ),
}
"""Experiments that are measured no more: their results stay."""
SETTLED_AT = {
    "5b50d73": ("repeated", "widths", "retokenisation", "cost", "averaging"),
    "9e4c636": ("gains", "kinds", "frontier", "scrubbing", "oracle"),
    "db1d0b46": ("stealing", "peers", "diversity"),
}
"""The last commit that can measure them."""
SECTIONS = (
    {kind.name: (kind.title, cleandoc(kind.__doc__ or "")) for kind in EXPERIMENTS}
    | {"pairs": ("Quality against references", "ROUGE, BLEU and BERTScore of texts (the paper's Table 6).")}
    | SETTLED
)
"""Of each experiment the heading and a line about it, in the order of the pages."""
PAGE_OF = {
    **dict.fromkeys(("gains", "direct"), "blocks"),
    "beta": "edits",
    "widths": "repeated",
    **dict.fromkeys(("scrubbing", "oracle", "averaging", "stealing"), "adversaries"),
}
"""Experiments that share a page, which may be another one's. All others have their own."""
SHARED = {
    "adversaries": (
        "Adversaries",
        "What edits, questions to the detector and collected answers do to a mark.",
    )
}
"""Heading of the pages that are no experiment's own, and a line about each."""
LIST = "README.md"
WORDS = """\
Tables that a page only counts stand, with every figure behind them and the versions of the packages, in its
JSON file. This prints them: `python -c "import sys, rich; from ttmark.evaluation.report.result import *;
[rich.print(t.rich()) for t in Result.load(Path(sys.argv[1])).tables]" FILE`.

## Words in the tables

- **Blocks.** r: tokens that the key picks together; "+ TTMark 2-token" is pairs. H: tokens before a block
  that the key looks at. b: branch budget, 8 in profiles and none in rows that do not name it. K: keys that
  are tried. A **profile** is scheme, r and H; `gumbel, r 2, H 2` is the default of a new key.
- **Detectors.** *Direct* takes the tokens as they stand. *Aligned* cuts an edited text into blocks, and pays
  a skip penalty (beta) for each token that it skips. *Localized* looks for passages: `scan` is ours,
  `waterseeker` the paper's. *Likelihood* is what `/v1/detect` asks. Tables with *combined* or *weighted*,
  those of adversaries, and those of edits beside other systems are of the detectors of before.
- **Rates.** FPR: the share of texts without the mark that are called marked. TPR, found: the share of marked
  texts that are. *FPR measured* counts texts without a mark.
- **z.** How many standard deviations a text's agreement with the key lies above chance. Between schemes only
  the p-value compares, and its *normal deviate*, the z at which a normal distribution has that p-value.
- **Rows per token.** Rows that the model computes for each token that comes out: 1 without a mark. Prompts
  that begin alike are read once, so a figure can stand up to a fifth too low.
- **Seconds** were taken while other work ran: they compare within a table. **Loops** are texts in which the
  same 8 tokens occur three times.
"""


def write_pages(run: Path, target: Path) -> list[str]:
    """Copies a run's results to `target`, beside those that are there, and writes the pages of all.

    A result that names no machine gets the one of the run's manifest. The manifest's versions are those of
    the process that opened the run last, and stay there.

    Returns:
        The names of the pages.

    Raises:
        ValueError: the run has no result.
        ManifestMismatch: `target` has results of another model, prompt file or seed.
    """
    found = [path for name in SECTIONS for path in _results(run, name)]
    if not found:
        raise ValueError(f"{run} holds no result; run `ttmark eval` first")
    manifest = Manifest.load(run)
    manifest.save(target)
    for path in found:
        result = Result.load(path)
        if result.machine is None:
            result = replace(result, machine=manifest.machine)
        write_whole(target / path.name, result.json(), mode=AS_UMASK_SAYS)
        for figure in result.figures:
            shutil.copyfile(run / f"{figure.name}.png", target / f"{figure.name}.png")
    written = pages(target)
    for name, text in written.items():
        (target / name).write_text(text)
    return list(written)


def pages(folder: Path) -> dict[str, str]:
    """What each page of a folder of results has to hold, by its name; the list comes first."""
    there = [name for name in SECTIONS if _results(folder, name)]
    of_page = groups(there, lambda name: PAGE_OF.get(name, name))
    heads = {page: SHARED.get(page, SECTIONS[names[0]]) for page, names in of_page.items()}
    listed = (f"[{title}]({page}.md)" for page, (title, _) in heads.items())
    parts = [
        "# Measured results\n",
        "; ".join(listed) + ".\n",
        WORDS,
        _provenance(Manifest.load(folder)),
    ]
    return {LIST: "\n".join(parts)} | {
        f"{page}.md": _page(folder, heads[page], names) for page, names in of_page.items()
    }


def _page(folder: Path, head: tuple[str, str], names: Sequence[str]) -> str:
    machine = Manifest.load(folder).machine  # the list names it
    parts = ["# {}\n\n{}\n".format(*head)]
    for name in names:
        if SECTIONS[name] != head:
            parts.append("## {}\n\n{}\n".format(*SECTIONS[name]))
        for path in _results(folder, name):
            if label := path.stem.removeprefix(name).removeprefix("-"):
                parts.append(f"## Run `{label}`\n")
            result = Result.load(path)
            parts.append((replace(result, machine=None) if result.machine == machine else result).markdown())
        parts += [
            f"`ttmark eval {name}` is a command up to commit {commit}.\n"
            for commit, settled in SETTLED_AT.items()
            if name in settled
        ]
    return "\n".join(parts)


def _results(folder: Path, experiment: str) -> list[Path]:
    """The experiment's own result, then those with a label."""
    plain = folder / f"{experiment}.json"
    return [path for path in (plain, *sorted(folder.glob(f"{experiment}-*.json"))) if path.is_file()]


def _provenance(manifest: Manifest) -> str:
    return (
        "## How they were measured\n\n"
        f"- Model `{manifest.model}` (SHA-256 of its folder {manifest.model_sha256[:12] or 'unknown'}),"
        f" prompts {manifest.prompts_sha256[:12]}, seed {manifest.seed}.\n"
        f"- {in_words(manifest.machine)}, where a page names no other.\n"
        "- Texts run to their full length: an end of text is a token like others, unless a table says that"
        " the model ends them. Rows of 200 and 400 tokens are of the same texts, cut.\n"
    )
