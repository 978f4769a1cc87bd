"""One document of a run's results: what each experiment asks, its tables, plots and command."""

import shutil
from pathlib import Path

import orjson

from ttmark.evaluation.experiments.registry import EXPERIMENTS
from ttmark.evaluation.manifest import FILE as MANIFEST
from ttmark.evaluation.report.result import Result

SECTIONS = {kind.name: (kind.title, kind.__doc__) for kind in EXPERIMENTS} | {
    "pairs": ("Quality against references", "The paper's Table 6.")
}
FINDINGS = "findings.md"


def write_document(run: Path, target: Path) -> list[str]:
    """Writes `<target>/README.md` with the findings beside it on top; gives the experiments it holds.

    Raises:
        ValueError: the run has no result.
    """
    sections = {name: _results(run, name) for name in SECTIONS}
    found = [path.stem for results in sections.values() for path in results]
    if not found:
        raise ValueError(f"{run} holds no result; run `ttmark eval` first")
    target.mkdir(parents=True, exist_ok=True)
    parts = ["# Measured results\n"]
    findings = target / FINDINGS
    if findings.is_file():
        parts.append(findings.read_text())
    parts.append(_provenance(run))
    for name, results in sections.items():
        if results:
            title, about = SECTIONS[name]
            parts.append(f"## {title}\n\n{about}\n")
        for path in results:
            result = Result.load(path)
            parts.append(result.markdown())
            shutil.copyfile(path, target / path.name)
            for figure in result.figures:
                shutil.copyfile(run / f"{figure.name}.png", target / f"{figure.name}.png")
    (target / "README.md").write_text("\n".join(parts))
    return found


def _results(run: Path, experiment: str) -> list[Path]:
    """The experiment's own result, then those with a label."""
    plain = run / f"{experiment}.json"
    return [path for path in (plain, *sorted(run.glob(f"{experiment}-*.json"))) if path.is_file()]


def _provenance(run: Path) -> str:
    manifest = orjson.loads((run / MANIFEST).read_bytes())
    machine = manifest["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in manifest["versions"].items())
    return (
        "## How it was measured\n\n"
        f"- Model `{manifest['model']}` (SHA-256 of its folder {manifest['model_sha256'][:12] or 'unknown'}),"
        f" prompts {manifest['prompts_sha256'][:12]}, seed {manifest['seed']}.\n"
        f"- {machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB; {versions}.\n"
        "- Texts run to their full length: an end of text is a token like others, except under Quality."
        " Rows of 200 tokens beside rows of 400 are of the same texts, cut.\n"
    )
