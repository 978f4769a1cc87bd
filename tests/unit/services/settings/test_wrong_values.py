"""Whatever is wrong with a setting is one line that names its variable and repeats no secret."""

from collections import Counter
from itertools import product

import pytest

from tests.unit.services.settings.wrong_values import (
    CLASSES,
    SAYS_THE_FOLDER,
    SECRET,
    is_legal,
    outcome,
    wrong_values,
)
from ttmark.services.settings.base import Settings, variable
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.settings.unknown_variables import ALL, of_features
from ttmark.services.startup import StartupError


def _below(cls: type[Settings]) -> set[type[Settings]]:
    return {cls}.union(*map(_below, cls.__subclasses__()))


def test_the_walk_misses_no_settings() -> None:
    walked = {one for cls in CLASSES for one in cls.__mro__}
    assert _below(Settings) <= walked
    assert {*ALL, *of_features()} == set(CLASSES)


def test_every_wrong_kind_of_every_setting_is_one_line_that_names_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts: Counter[str] = Counter()
    wrong = []
    every = ((cls, variable(field)) for cls in CLASSES for field in cls.model_fields)
    for (cls, name), (kind, value) in product(every, wrong_values(tmp_path).items()):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            ended, said = outcome(cls)
        counts[ended] += 1
        expected = "accepted" if is_legal(cls, name, kind) else "refused"
        clear = not said or (said.startswith(f"{name}: ") and "\n" not in said)
        silent = SECRET not in said or name in SAYS_THE_FOLDER
        if (ended, clear, silent, len(said) < 400) != (expected, True, True, True):
            wrong.append(f"{cls.__name__} {name} {kind}: {ended} {said[:300]}")
    print(f"\n{sum(counts.values())} values: {dict(counts)}")
    assert wrong == [], "\n".join(wrong)
    assert counts["refused"] > 800


def test_no_bound_of_a_setting_is_lost_to_one_of_its_type() -> None:
    """Of two bounds of a kind pydantic holds that of the type alone, which is the wider one here."""
    for cls in CLASSES:
        for field, info in cls.model_fields.items():
            kinds = [type(bound) for bound in info.metadata if not callable(getattr(bound, "func", None))]
            assert len(kinds) == len(set(kinds)), f"{cls.__name__}.{field}"


@pytest.mark.parametrize("name", ["MAX_BODY_BYTES", "MAX_DOCUMENT_TOKENS", "MAX_QUEUE"])
def test_a_limit_of_nothing_is_refused_in_a_short_line(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"TTMARK_{name}", "0")
    with pytest.raises(StartupError, match=f"^TTMARK_{name}: .{{,100}}$"):
        DetectionSettings()


def test_an_empty_variable_is_one_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for cls in CLASSES:
        for field in cls.model_fields:
            monkeypatch.delenv(variable(field), raising=False)
        left_out = cls()
        for field in cls.model_fields:
            monkeypatch.setenv(variable(field), "")
        assert cls() == left_out


def test_several_wrong_values_are_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTMARK_STORE_URL", "nowhere")
    monkeypatch.setenv("TTMARK_KEK", SECRET)
    _, said = outcome(KeyStoreSettings)
    assert "TTMARK_STORE_URL: the key store is a URL" in said
    assert "; TTMARK_KEK: a key-encryption key is 64 hexadecimal digits" in said


URLS = {
    "nonsense": "the key store is a URL",
    "sqlite://": "the key store is a URL",
    "sqlite:///": "the key store is a URL",
    "sqlite://relative": "the key store is a URL",
    "redis://": "not a Redis URL",
    "redis://host?ssl_ca_certs=/x": "certificates in the Redis URL need rediss://",
    "redis://:hunter2@host:99999": "not a Redis URL",
    "redis://:hun/ter2@host": "not a Redis URL",
    "redis://user:12?hunter2=3@host": "unknown option in the Redis URL",
    "redis://:hun\u2100ter2@[host": "not a Redis URL",
    "sqlite://hun\u2100ter2@host/a": "the key store is a URL",
    "sqlite:///nowhere/keys.db": "there is no such folder: mkdir -p nowhere",
    "sqlite:///a file/keys.db": "a folder is needed, and this is a file",
}


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("in_a_file", [False, True])
def test_a_store_s_url_is_refused_without_being_repeated(url, in_a_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file").touch()
    if in_a_file:
        (tmp_path / "url").write_text(url)
        monkeypatch.setenv("TTMARK_STORE_URL_FILE", "url")
    else:
        monkeypatch.setenv("TTMARK_STORE_URL", url)
    name = "TTMARK_STORE_URL_FILE" if in_a_file else "TTMARK_STORE_URL"
    with pytest.raises(StartupError) as refused:
        KeyStoreSettings().url()
    said = str(refused.value)
    assert said.startswith(f"{name}: {URLS[url]}")
    assert "ter2" not in said
    assert "\n" not in said
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("origin", ["https://app.example.org/", "app.example.org", "https://*.org/a", "**"])
def test_what_no_browser_sends_as_an_origin_is_refused(monkeypatch, origin):
    monkeypatch.setenv("TTMARK_CORS_ORIGINS", f"*,{origin}")
    with pytest.raises(StartupError, match="TTMARK_CORS_ORIGINS: each is an origin"):
        GenerationSettings()
