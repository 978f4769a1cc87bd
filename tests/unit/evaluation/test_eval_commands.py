"""`ttmark eval` without a trained model: the simulated one."""

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.report.result import Result as Outcome

pytestmark = pytest.mark.long


def simulated(folder: Path, *arguments: str) -> Result:
    shared = ["--model", "simulated", "--setting", "default", "--out", str(folder)]
    return CliRunner().invoke(eval_app(), [*arguments, *shared])


def test_an_experiment_runs_on_the_simulated_model_and_resumes(tmp_path: Path) -> None:
    arguments = ("direct", "--texts", "3", "--length", "40", "--block-size", "1", "--block-size", "2")
    assert simulated(tmp_path, *arguments).exit_code == 0
    files = sorted((tmp_path / "texts").glob("*.jsonl"))
    before = [path.read_bytes() for path in files]
    assert len(files) == 3
    assert simulated(tmp_path, *arguments).exit_code == 0
    assert [path.read_bytes() for path in files] == before
    assert [row["block_size"] for row in Outcome.load(tmp_path / "direct.json").data] == [1, 2]
    assert orjson.loads((tmp_path / "manifest.json").read_bytes())["model"] == "simulated"
    refused = simulated(tmp_path, *arguments, "--seed", "1")
    (line,) = refused.output.strip().splitlines()
    assert (refused.exit_code, "another seed" in line, "choose another --out" in line) == (1, True, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("direct", "--texts", "1"), "'--texts'"),
        (("direct", "--length", "0"), "'--length'"),
    ],
)
def test_too_small_a_number_is_a_wrong_option_and_no_traceback(
    arguments: tuple[str, ...], message: str
) -> None:
    result = CliRunner().invoke(eval_app(), arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("direct", "--scheme", "rot13", "--texts", "2", "--length", "8"), "rot13"),
        (("direct", "--label", "Two words"), "lower-case"),
    ],
)
def test_an_unknown_name_is_one_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = simulated(tmp_path, *arguments)
    assert result.exit_code == 1
    assert message in result.output.splitlines()[-1]
