"""`ttmark conformance`: signed reports on error rates of a key, and on what attacks leave of a mark."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ttmark.services.cli.files import pem_text, print_signed, public_key, read_bytes, signed_values
from ttmark.services.cli.key_store import print_json
from ttmark.services.cli.options import DetectUrl, JsonOutput, access_token
from ttmark.services.features.conformance.conformance_options import AttackOptions, ConformanceOptions
from ttmark.services.startup import StartupError, needs, no_start_after, one_clear_line
from ttmark.shared.commands_of_dataclasses import command_of
from ttmark.shared.languages.words import counted
from ttmark.shared.signed_files.signed_file import (
    ATTACKS_FORMAT,
    JSON_NAME,
    PAGE_NAME,
    REPORTS,
    CaseKey,
    FileRefused,
    NotACaseKey,
    verified_report,
)

if TYPE_CHECKING:
    from ttmark.evaluation.conformance.figures import Figure

app = typer.Typer(
    help="Measured error rates of a key, and what attacks leave of a mark, signed.", no_args_is_help=True
)

Reports = Annotated[
    list[str], typer.Argument(metavar="FOLDER_OR_FILES", help="A run's folder, or report.json, report.html.")
]
_JSONL = (".jsonl", ".gz")


def _run(options: ConformanceOptions) -> None:
    from ttmark.services.features.conformance.conformance_run import run

    with one_clear_line():
        signer, started = _signer_of_new(options.out, options.signing_key), time.monotonic()
        run(options, _own_texts(options.texts), signer, started)
    _say_written(options.out, signer)


def _attack(options: AttackOptions) -> None:
    from ttmark.services.features.conformance.conformance_attacks import run

    with one_clear_line(), no_start_after(OSError, ValueError):
        signer, started = _signer_of_new(options.out, options.signing_key), time.monotonic()
        token = "" if options.detector else access_token(options.token)
        run(options, _own_texts(options.texts), token, signer, started)
    _say_written(options.out, signer)


app.command("run")(needs("eval")(command_of(_run, ConformanceOptions)))
app.command("attacks")(needs("eval")(command_of(_attack, AttackOptions)))


@app.command()
def verify(
    files: Reports,
    key: Annotated[
        Path | None,
        typer.Option("--public-key", help="Public key in PEM; default: ask the service."),
    ] = None,
    url: DetectUrl = "http://127.0.0.1:8001",
    as_json: JsonOutput = False,
) -> None:
    """Say whether a report is as it was signed, page and json alike; exit code 1 when not.

    Of a folder both are verified, and that they are of one report.
    """
    with one_clear_line():
        public = public_key(key, url)
        try:
            report = verified_report([read_bytes(file) for file in _named(files)], public)
        except FileRefused as error:
            raise StartupError(f"refused: {error}") from error
        with signed_values():
            made = f"made: {report['made_at']}, release {report['release']}, seed {report['seed']}"
            if report["format"] == ATTACKS_FORMAT:
                texts = counted(report["texts"]["texts"], "text")
                about = f"attacks on the mark of {report['subject']}, {texts}"
            else:
                measured, model = report["key"], report["model"]["name"]
                about = f"key {measured['key_id']}, profile {measured['profile_id']}, model {model}"
                made += f", size {report['size']}"
            if as_json:
                print_json({"signed_by": public.name, "report": report})
            else:
                genuine = f"genuine: signed with the key {public.name}, and not changed since"
                print_signed(genuine, about, made)


@app.command("compare")
@needs("eval")
def compare_runs(
    first: Annotated[str, typer.Argument(help="A run's folder or report.json.")],
    second: Annotated[str, typer.Argument(help="That of an independent run.")],
    as_json: JsonOutput = False,
) -> None:
    """Say whether two reports agree within chance, figure by figure; exit code 1 when not.

    Signatures are not looked at: verify each report with the key of who made it.
    """
    from ttmark.evaluation.conformance.figures import compare

    with one_clear_line():
        one, other = _read(first), _read(second)
        try:
            found = compare(_figures(one), _figures(other))
        except (KeyError, TypeError, ValueError) as error:
            raise StartupError(f"the reports cannot be compared: {error}") from error
    unlike = [name for name in ("profile", "model files", "size") if _of(one)[name] != _of(other)[name]]
    if as_json:
        outside = [
            {"first": one.first.stored(), "second": one.second.stored(), "p": one.p} for one in found.outside
        ]
        print_json(
            {
                "figures": len(found.differences),
                "limit": found.limit,
                "outside": outside,
                "below_5_percent": found.below_5_percent,
                "unlike": unlike,
            }
        )
    else:
        for name in unlike:
            typer.echo(f"the runs are of another {name}")
        in_both = counted(len(found.differences), "figure")
        typer.echo(f"{in_both} in both; {found.below_5_percent} differ with p < 0.05")
        for one_found in found.outside:
            here, there = one_found.first, one_found.second
            typer.echo(
                f"beyond chance: {here.section}, {here.name}, at {here.rate:g}: {here.found} of {here.texts}"
                f" and {there.found} of {there.texts}, p = {one_found.p:.2g}"
            )
        typer.echo("the runs differ by more than chance" if found.outside else "the runs agree within chance")
    if found.outside:
        raise typer.Exit(1)


def _say_written(out: Path, signer: CaseKey) -> None:
    typer.echo(f"wrote {out / PAGE_NAME} and {out / JSON_NAME}, signed with the key {signer.public.name}")


def _signer_of_new(out: Path, path: Path | None) -> CaseKey:
    """The key of a report that is to be written into `out`, where none may be."""
    if (out / JSON_NAME).exists():
        raise StartupError(f"{out / JSON_NAME} is there already: a report is not overwritten")
    from ttmark.detect_service.features.cases.settings import CaseSettings

    if path is None:
        key = CaseSettings().load_case_key()
        if key is None:
            raise StartupError("a report is signed: give --signing-key (`ttmark case new-key` makes one)")
        return key
    try:
        return CaseKey.from_pem(pem_text(path))
    except NotACaseKey as error:
        raise StartupError(f"{path}: {error}") from error


def _own_texts(path: Path | None) -> list[str] | None:
    """The operator's texts, if any; every file has to be readable, so that none is left out unseen."""
    if path is None:
        return None
    if path.name.endswith(_JSONL):
        from ttmark.evaluation.text_files import read_human_texts

        try:
            return read_human_texts(path)
        except (OSError, ValueError) as error:
            raise StartupError(f"--texts {path}: {error}") from error
    from ttmark.detect_service.features.files.commands.input_files import NotExamined, named_files, read_texts

    read = read_texts(named_files([str(path)])[0])
    for one in read:
        if isinstance(one, NotExamined):
            raise StartupError(f"--texts {one.name}: {one.reason}")
    return [one for one in read if isinstance(one, str)]


def _named(names: list[str]) -> list[str]:
    files: list[str] = []
    for name in names:
        folder = Path(name)
        files += [str(folder / JSON_NAME), str(folder / PAGE_NAME)] if folder.is_dir() else [name]
    return files


def _read(name: str) -> dict[str, Any]:
    file = str(Path(name) / JSON_NAME) if Path(name).is_dir() else name
    try:
        report: dict[str, Any] = json.loads(read_bytes(file))[REPORTS.name]
        _figures(report)
        _of(report)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StartupError(f"{file} is not a report in json") from error
    return report


def _figures(report: dict[str, Any]) -> "list[Figure]":
    from ttmark.evaluation.conformance.figures import Figure

    return [Figure.of_stored(one) for one in report["figures"]]


def _of(report: dict[str, Any]) -> dict[str, Any]:
    model, key = report.get("model", {}), report.get("key", {})
    return {"profile": key.get("profile"), "model files": model.get("files"), "size": report.get("size")}


def add(groups: Mapping[str, typer.Typer]) -> None:
    """Adds the commands to those of `ttmark`."""
    groups[""].add_typer(app, name="conformance")
