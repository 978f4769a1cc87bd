"""CONTRIBUTING.md, taken at its word: its changes are made in a copy, in the files that it names."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.harness.imports import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
TUTORIAL = (ROOT / "docs/tutorials/add-a-scheme.md").read_text()
MOST_FILES = 5
MOST_OF_THE_SPINE = (13, 3_400)

Edits = Mapping[str, str | Sequence[tuple[str, str]]]
"""By file: its text where it is new, else what comes in place of what."""


def before(there: str, new: str) -> tuple[str, str]:
    return there, new + there


def after(there: str, new: str) -> tuple[str, str]:
    return there, there + new


TOY = re.findall(r"```python\n(.*?)```", TUTORIAL, re.DOTALL)[0].replace(
    "from ttmark.schemes import BinomialNull, Scheme",
    "from ttmark.shared.watermark.nulls import BinomialNull\n"
    "from ttmark.shared.watermark.schemes.base import Scheme",
)
SCHEME: Edits = {
    "shared/watermark/schemes/toy.py": TOY,
    "shared/watermark/schemes/registry.py": [
        ("(SynthID, DiPmark,", "(Toy, SynthID, DiPmark,"),
        ("import SynthID\n", "import SynthID\nfrom ttmark.shared.watermark.schemes.toy import Toy\n"),
    ],
}
SCHEME_IS_THERE = """
from ttmark.shared.watermark.schemes.watermark import Watermark
from ttmark.shared.watermark.detectors.block_scores import detect_direct
from ttmark.shared.watermark.schemes.registry import scheme_names

assert "toy" in scheme_names()
print(detect_direct(Watermark("toy", 2), bytes(16), range(60)).log10_p)
"""

PARAMETER: Edits = {
    "shared/schemas/generation/sampling.py": [
        before(
            "    presence_penalty: float", "    seen_bonus: float | None = Field(default=None, ge=0, le=2)\n"
        )
    ],
    "gen_service/api/plan/request_plan.py": [("_SAME_NAME = (", '_SAME_NAME = ("seen_bonus", ')],
    "gen_service/decoding/request.py": [
        after("    presence_penalty: float = 0.0\n", "    seen_bonus: float = 0.0\n")
    ],
    "gen_service/decoding/sequence.py": [
        ("params.repetition_penalty\n", "params.repetition_penalty, params.seen_bonus\n")
    ],
    "gen_service/decoding/logit_processors.py": [
        ("    repetition: float = 1.0\n", "    repetition: float = 1.0\n    seen: float = 0.0\n"),
        ("return self.presence != 0.0", "return self.seen != 0.0 or self.presence != 0.0"),
        ("self.presence * times", "(self.presence - self.seen) * times"),
    ],
}
PARAMETER_IS_THERE = """
from types import SimpleNamespace

import torch
from ttmark.gen_service.api.plan.request_plan import sampling_params
from ttmark.gen_service.decoding.request import GenerationRequest
from ttmark.gen_service.decoding.sequence import Sequence
from ttmark.shared.schemas.generation.completions import CompletionRequest
from ttmark.shared.schemas.generation.sampling import SamplingDefaults

body = CompletionRequest.model_validate({"model": "m", "prompt": "p", "seen_bonus": 1.5})
params = sampling_params(body, SamplingDefaults().under(body), max_tokens=5, logprobs=None, vocab_size=8)
sequence = Sequence(GenerationRequest("1", (1,), params, None), None, ())
logits = torch.zeros(1, 8)
sequence.adjust(SimpleNamespace(paths=[[3]]), logits)
assert logits[0].tolist() == [0, 0, 0, 1.5, 0, 0, 0, 0], logits
"""

RANGE = "    logit_range: float | None = Field(default=None, ge=0)\n"
FILTER: Edits = {
    "shared/schemas/generation/sampling.py": [
        before(
            "    repetition_penalty: float = Field(default=1.0",
            "    logit_range: float = Field(default=0.0, ge=0)\n",
        ),
        before("    stop: Stop =", RANGE),
    ],
    "shared/schemas/generation/origin.py": [before("    repetition_penalty: float", RANGE)],
    "gen_service/decoding/request.py": [
        after("    min_p: float = 0.0\n", "    logit_range: float = 0.0\n"),
        before(
            "        _require(all(self.stop)",
            '        _require(self.logit_range >= 0.0, "logit_range must be at least 0")\n',
        ),
    ],
    "gen_service/decoding/filtered_tokens.py": [
        after(
            "    min_p: float = 0.0\n",
            "    logit_range: float = 0.0\n\n"
            "    @property\n    def least(self) -> float:\n"
            "        return max(self.min_p, math.exp(-self.logit_range) if self.logit_range else 0.0)\n",
        )
    ],
    "gen_service/decoding/filters.py": [
        ("p.min_p) for p in params]\n", "p.least) for p in params]\n"),
        ("p.min_p) for p in params]).T", "p.least) for p in params]).T"),
        ("own.min_p > 0.0", "own.least > 0.0"),
        ("weights >= params.min_p", "weights >= params.least"),
        ("or params.min_p)", "or params.least)"),
        ("through[-1]), params.min_p)", "through[-1]), params.least)"),
    ],
}
FILTER_IS_THERE = """
from ttmark.gen_service.decoding.filters import filter_rows
from ttmark.gen_service.decoding.filtered_tokens import FilterParams
from ttmark.shared.schemas.generation.readings import ReadingsRequest

asked = {"model": "m", "prompt": "p", "logit_range": 2.5}
body = CompletionRequest.model_validate(asked)
params = sampling_params(body, SamplingDefaults().under(body), max_tokens=5, logprobs=None, vocab_size=8)
sequence = Sequence(GenerationRequest("1", (1,), params, None), None, ())
read_at = SamplingDefaults().under(ReadingsRequest.model_validate(asked | {"texts": ["t"]}))
read_at.pop("repetition_penalty")
assert FilterParams(**read_at) == sequence.filters
row = -torch.arange(2000.0)[None]
for more in ({}, {"top_k": 50}, {"top_p": 0.999}):
    (support,) = filter_rows(row, [FilterParams(**read_at | more)])
    assert support.ids.tolist() == [0, 1, 2], support
"""

FEATURE: Edits = {
    "detect_service/features/languages/__init__.py": '"""Languages that answers can be in."""\n',
    "detect_service/features/languages/service.py": re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0],
    "tests/harness/every_request.py": [
        before('    client.get("/v1/keys")', '    client.get("/v1/languages").raise_for_status()\n')
    ],
}
FEATURE_IS_THERE = """
from ttmark.detect_service.api.app import create_detection_app
from ttmark.detect_service.ask import Means
from ttmark.detect_service.documents.backend import DetectionBackend
from ttmark.detect_service.documents.backend import TokenizerSet
from ttmark.shared.features import module_of
from ttmark.shared.http.app import AppOptions

features = [module_of("languages", "service").opened(None)]
means = Means(DetectionBackend(None, TokenizerSet([]), max_document_tokens=1))
app = create_detection_app(means, AppOptions(authenticate=None), readiness=None, features=features)
assert app.openapi()["paths"]["/v1/languages"]["get"]["description"] == "Languages of the answers."
"""
FIELD: Edits = {
    "shared/schemas/detection/extraction.py": [
        before("    encoding: str | None = Field(", "    characters: int | None = None\n")
    ],
    "detect_service/features/files/routes.py": [
        before("        encoding=found.encoding,", "        characters=len(found.text),\n")
    ],
}
FIELD_IS_THERE = """
import asyncio
import json

from ttmark.detect_service.features.files.text.extraction import Extraction
from ttmark.detect_service.features.files.routes import written

async def told():
    return b"".join([piece async for piece in written(Extraction("four"))])

assert json.loads(asyncio.run(told())) == {"text": "four", "characters": 4}
"""

METRIC: Edits = {
    "detect_service/api/metrics.py": [
        before(
            "        self._tokens = histogram(",
            '        self._short = counter("ttmark_detect_short_documents", "Too short to say.", ["mode"])\n',
        ),
        before(
            "        self._tokens.labels(mode).observe(tokens)",
            '        self._short.labels(mode).inc(verdict == "too_short")\n',
        ),
    ],
    "deploy/grafana/dashboards/ttmark-detection.json": [
        ("ttmark_detect_hypotheses_total", "ttmark_detect_short_documents_total")
    ],
}
METRIC_IS_THERE = """
from prometheus_client import CollectorRegistry
from ttmark.detect_service.api.metrics import DetectionMetrics

registry = CollectorRegistry()
DetectionMetrics(registry).document("combined", "too_short", 3, 1, None)
assert registry.get_sample_value("ttmark_detect_short_documents_total", {"mode": "combined"}) == 1
"""
RECIPES = {
    "A scheme": (SCHEME, SCHEME_IS_THERE),
    "A sampling parameter": (PARAMETER, PARAMETER_IS_THERE),
    "A filter": (FILTER, FILTER_IS_THERE),
    "A feature": (FEATURE, FEATURE_IS_THERE),
    "A field of an answer": (FIELD, FIELD_IS_THERE),
    "A metric": (METRIC, METRIC_IS_THERE),
}


def named(section: str, level: int = 3) -> list[str]:
    """The files of a section's table."""
    text = PAGE.split(f"\n{'#' * level} {section}\n")[1].partition("\n#")[0]
    return re.findall(r"^\| `([\w./-]+)` \|", text, re.M)


def test_the_spine_is_there_and_about_as_long_as_the_page_says() -> None:
    spine = named("The spine", level=2)
    lines = sum((ROOT / file).read_text().count("\n") for file in spine)
    ((files, said),) = re.findall(r"these (\d+) files, some ([\d,]+) lines,", PAGE)
    assert int(files) == len(spine) <= MOST_OF_THE_SPINE[0]
    assert abs(int(said.replace(",", "")) - lines) <= 100
    assert lines <= MOST_OF_THE_SPINE[1]


def test_each_noun_is_a_class_of_the_file_that_the_page_names() -> None:
    nouns = re.findall(r"^\| ([a-z]+) \| `(\w+)` \| `([\w./]+)` \|", PAGE, re.M)
    lacking = [
        (noun, name)
        for noun, name, file in nouns
        if not re.search(rf"^(class {name}\b|{name} = )", (ROOT / file).read_text(), re.M)
    ]
    assert (len(nouns), lacking) == (11, [])


def make(edits: Edits, tree: Path) -> None:
    for name, change in edits.items():
        file = tree / name
        if isinstance(change, str):
            assert not file.exists()
            file.parent.mkdir(exist_ok=True)
            file.write_text(change)
            continue
        text = file.read_text()
        for old, new in change:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        file.write_text(text)


@pytest.mark.parametrize("section", RECIPES)
def test_the_page_names_the_files_of_a_change_and_no_more_than_five(section: str) -> None:
    edits, _ = RECIPES[section]
    assert named(section) == list(edits)
    assert len(edits) <= MOST_FILES


@pytest.mark.long
def test_changes_in_the_files_that_the_page_names_suffice(tmp_path: Path) -> None:
    left_out = shutil.ignore_patterns("*.safetensors", "*.gz", "*.jsonl")
    for folder in ("ttmark", "shared", "gen_service", "detect_service", "deploy", "tests/harness"):
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True, ignore=left_out)
    code = f"import ttmark\nassert ttmark.__file__.startswith({str(tmp_path)!r}), ttmark.__file__\n"
    for edits, use in RECIPES.values():
        make(edits, tmp_path)
        code += use
    # One process for all of them: most of the time goes into loading torch.
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_page_names_the_files_that_a_filter_takes() -> None:
    using = [
        str(path.relative_to(ROOT))
        for folder in ("shared", "gen_service", "detect_service", "services", "library")
        for kind in ("*.py", "*.js")
        for path in (ROOT / folder).rglob(kind)
        if re.search(r"\bmin_p\b", path.read_text())
    ]
    lists = PAGE.split("has a list of them.")[1].partition("\nTests:")[0]
    assert sorted(named("A filter") + re.findall(r"`([\w/]+\.(?:py|js))`", lists)) == sorted(using)


def test_what_the_page_says_to_run_is_there() -> None:
    (test,) = re.findall(r"-p no:schemathesis (\S+)", PAGE)
    paths = {link for link in re.findall(r"\]\(([^)#]+)", PAGE) if "://" not in link}
    modules = {name.replace(".", "/") for name in re.findall(r"-m (tests\.harness\.\w+)", PAGE)}
    assert [path for path in {test, *paths, *modules} if not list(ROOT.glob(f"{path}*"))] == []
