"""Whatever is wrong with what is typed is one line that begins `ttmark:`, for each option of each command."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from typer.testing import CliRunner

from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.services.cli import up
from ttmark.services.cli.main import app
from ttmark.services.startup import StartupError
from ttmark.shared.client import client

pytestmark = pytest.mark.long

HANDED_ON = ("eval", "bench")  # have a command line of their own
BY_NAME = {
    "tokenizer": str(DEMO_MODEL_PATH),
    "scheme": "synthid",
    "model": "demo",
    "store_url": "sqlite:///k.db",
}
CLOSED = "http://127.0.0.1:9"  # nobody listens there


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that runs something, with what is typed for it."""
    below = getattr(command, "commands", None)
    if below is None:
        yield path, command
        return
    for name, one in below.items():
        if name not in HANDED_ON:
            yield from commands(one, *path, name)


def wrong_values(folder: Path, *, number: bool) -> dict[str, str]:
    """What somebody may type in place of a value."""
    numbers = {"text": "no", "negative": "-1", "huge": "9" * 400, "infinite": "1e400", "nan": "nan"}
    if number:
        return numbers
    texts = {"empty": "", "text": "no such!", "huge": "9" * 5_000, "control": "a\n\udcff"}
    paths = {
        "missing": str(folder / "nowhere" / "file"),
        "folder": str(folder),
        "binary": str(folder / "binary"),
    }
    return {**texts, **paths, "letters": "ä", "url": "http://[", "device": "/dev/null/x"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a key store; what takes minutes or a network is refused in one line."""

    def reached(*_: object, **__: object) -> None:
        raise StartupError("reached")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TTMARK_STORE_URL", "sqlite:///keys.db")
    monkeypatch.setenv("TTMARK_KEK", "01" * 32)
    monkeypatch.setenv("TTMARK_TOKEN", "ttm_a_b")
    monkeypatch.setenv("TTMARK_GEN_URL", CLOSED)
    monkeypatch.setenv("TTMARK_DETECT_URL", CLOSED)
    monkeypatch.setattr(client.time, "sleep", lambda _: None)
    monkeypatch.setattr(up, "have_model", reached)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x81")
    (tmp_path / "text.txt").write_text("a text")
    return tmp_path


def typed(command: Any, wrong: Any, value: str) -> list[str]:
    """The arguments of a command with one wrong value; the other required ones are right, or harmless."""
    options, arguments = [], []
    for parameter in command.params:
        given = (
            value
            if parameter is wrong
            else BY_NAME.get(parameter.name, "1" if _is_number(parameter) else "a")
        )
        if parameter.param_type_name == "argument":
            if parameter.required or parameter is wrong:
                arguments.append(given)
        elif parameter.required or parameter is wrong:
            options.append(f"{parameter.opts[0]}={given}")
    yes = ["--yes"] if any(parameter.name == "yes" for parameter in command.params) else []
    return [*options, *yes, "--", *arguments]


def _is_number(parameter: Any) -> bool:
    annotation = parameter.type_descriptor.annotation
    return bool({int, float} & {annotation, *get_args(annotation)})


def command_lines(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Each with one wrong value, and what is wrong with it."""
    for path, command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            if getattr(parameter, "is_flag", False) or path[0] == "serve":
                continue
            for kind, value in wrong_values(folder, number=_is_number(parameter)).items():
                yield f"{' '.join(path)} {parameter.name} {kind}", [*path, *typed(command, parameter, value)]


# A step that shares no factor with the five or ten values of an option comes to each kind of them.
@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_every_wrong_value_of_every_option_is_one_line(folder: Path, step: int) -> None:
    counts: Counter[int] = Counter()
    wrong = []
    for what, arguments in islice(command_lines(folder), 0, None, step):
        result = CliRunner().invoke(app, arguments, input="")
        counts[result.exit_code] += 1
        lines = result.stderr.splitlines()
        if (
            not isinstance(result.exception, SystemExit | None)
            or result.exit_code not in (0, 1, 2)
            or (result.exit_code == 2 and len(lines) != 1)
            or (result.exit_code and not (lines and lines[-1].startswith("ttmark: ")))
            or len(result.stderr) > 6_500
        ):
            said = f"{result.exit_code} {result.exception!r} {result.stderr[:300]!r}"
            wrong.append(f"{what}: {said}")
    print(f"\n{sum(counts.values())} command lines, by exit code: {dict(counts)}")
    assert wrong == []
