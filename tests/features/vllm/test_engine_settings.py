"""Which engine the settings name, and one clear line where they do not fit it."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.gen_service.features.vllm import service as vllm
from ttmark.gen_service.features.vllm.vllm_settings import VllmSettings
from ttmark.services.composition.served_models import load_engine
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.startup import MODULES, StartupError

FOLDER = Path("nowhere")


def settings(**chosen: object) -> GenerationSettings:
    return GenerationSettings(model=("owner/one",), **chosen)  # type: ignore[arg-type]


def refusal(chosen: GenerationSettings) -> str:
    with pytest.raises(StartupError) as error:
        load_engine("one", FOLDER, chosen, [vllm.opened(chosen)])
    assert "\n" not in str(error.value)
    return str(error.value)


def test_an_engine_that_is_not_there_is_named() -> None:
    with pytest.raises(StartupError, match="TTMARK_ENGINE=vllm: there is no such engine"):
        load_engine("one", FOLDER, settings(engine="vllm"))


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_a_missing_vllm_is_named_with_what_installs_it() -> None:
    said = refusal(settings(engine="vllm"))
    assert "vLLM is not installed: pip install vllm==0.32.0" in said


def test_the_embedded_engine_has_no_file_of_arguments_and_a_missing_library_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(MODULES, "vllm", ("no_such_module",))
    assert "no_such_module not installed: pip install 'ttmark[vllm]'" in refusal(settings(engine="vllm"))
    (tmp_path / "a.yaml").touch()
    monkeypatch.setenv("TTMARK_ENGINE_FILE", str(tmp_path / "a.yaml"))
    assert "TTMARK_ENGINE_FILE is for TTMARK_ENGINE=vllm" in refusal(settings())


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"reproducible": True}, "TTMARK_REPRODUCIBLE is for the embedded engine"),
        ({"quantization": "int4"}, "TTMARK_QUANTIZATION is for the embedded engine"),
        ({"model": ("owner/one", "owner/two")}, "TTMARK_ENGINE=vllm serves one model"),
    ],
)
def test_what_vllm_has_not_is_refused(monkeypatch, chosen, said):
    monkeypatch.setattr("ttmark.gen_service.features.vllm.service.find_spec", lambda _: object())
    assert said in refusal(settings(engine="vllm").model_copy(update=chosen))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe", "cannot be read: "),
        (b"a: [", "cannot be read: "),
        (b"- a\n", "must hold names and values"),
    ],
)
def test_a_file_that_is_none_is_refused(monkeypatch, tmp_path, content, said):
    monkeypatch.setattr("ttmark.gen_service.features.vllm.service.find_spec", lambda _: object())
    file = tmp_path / "vllm.yaml"
    file.write_bytes(content)
    monkeypatch.setenv("TTMARK_ENGINE_FILE", str(file))
    assert said in refusal(settings(engine="vllm"))


def test_both_engines_share_readings_and_prefixes_alike() -> None:
    ours, theirs = EngineSettings(), VllmSettings()
    assert (theirs.reading_share, theirs.prefix_cache) == (ours.reading_share, ours.prefix_cache)
