"""Everything of vLLM that is touched is there, as it was; an upgrade fails here first.

Sources are read, of the installed vLLM and of the wheel that the variable VLLM_WHEEL names; nothing is
imported.
"""

import hashlib
import os
from pathlib import Path

import pytest

from tests.features.vllm.installed.sources import Sources
from tests.features.vllm.installed.touched import RUNNER_ATTRIBUTES, TOUCHED, WATERMARK_FILES
from ttmark.gen_service.features.vllm.vllm_settings import VERSIONS

WHEEL = os.environ.get("VLLM_WHEEL")
PACKAGES = {
    name: found
    for name, found in (
        ("installed", Sources.installed()),
        ("wheel", Sources.of_wheel(Path(WHEEL)) if WHEEL else None),
    )
    if found is not None
}


@pytest.fixture(params=PACKAGES or ["none"])
def vllm(request: pytest.FixtureRequest) -> Sources:
    if request.param not in PACKAGES:
        pytest.skip("there is none: make test-vllm installs one, VLLM_WHEEL names a wheel")
    return PACKAGES[request.param]


def test_what_is_touched_is_there(vllm: Sources) -> None:
    lacking = {}
    for name, relied_on in TOUCHED.items():
        try:
            lacking[name] = set(relied_on) - vllm.names(name)
        except LookupError:
            lacking[name] = {"itself"}
    assert {name: what for name, what in lacking.items() if what} == {}


def test_the_runner_sets_the_attributes_that_are_read(vllm: Sources) -> None:
    own = vllm.set_on_self("vllm.v1.worker.gpu_model_runner")
    assert [name for name in RUNNER_ATTRIBUTES if name not in own] == []


def test_its_own_marks_are_made_and_found_as_when_ours_were_compared_with_them(vllm: Sources) -> None:
    digests = {name: hashlib.sha256((vllm.root / name).read_bytes()).hexdigest() for name in WATERMARK_FILES}
    assert digests == WATERMARK_FILES


def test_a_wheel_is_of_a_version_that_is_served(vllm: Sources) -> None:
    assert vllm.version is None or vllm.version in VERSIONS


def test_what_is_not_there_is_missed(tmp_path: Path) -> None:
    package = tmp_path / "vllm"
    (package / "inner").mkdir(parents=True)
    (package / "inner/base.py").write_text("class Base:\n    kept: int\n    def method(self, one): ...\n")
    (package / "inner/__init__.py").write_text("from vllm.inner.base import Base as Named\n")
    (package / "there.py").write_text(
        "from vllm.inner import Named\n"
        "class Thing(Named, Elsewhere):\n    own = 1\n    def __init__(self, *, two): self.set = two\n"
    )
    sources = Sources(package)
    assert sources.names("vllm.there.Thing") == {"kept", "self", "two"}
    assert sources.names("vllm.there.Thing.method") == {"self", "one"}
    assert sources.names("vllm.there.Thing.own") == set()
    assert sources.set_on_self("vllm.there") == {"set"}
    for missing in ("vllm.there.Thing.gone", "vllm.there.Gone", "vllm.gone.Thing"):
        with pytest.raises(LookupError):
            sources.names(missing)
