"""`ttmark ask`: asks several deployments about one text at once, each by its public route."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from ttmark.detect_service.features.files.commands.detect import FOUND_CODE
from ttmark.services.cli.files import read_bytes, shown
from ttmark.services.cli.options import JsonOutput, PlainHttp, bad_usage, one_line_errors
from ttmark.services.cli.terminal import print_table
from ttmark.services.settings.values import web_address
from ttmark.services.startup import in_one_line
from ttmark.shared.client import AsyncClient, ClientError
from ttmark.shared.outgoing import blocking
from ttmark.shared.signpost import signposts

_MOST_ADDRESSES = 64
_LONGEST_WORDS, _MOST_BYTES = 500, 2**20


@dataclass(frozen=True, slots=True)
class _Reply:
    """Of one deployment.

    Attributes:
        verdict: its own word; None: it did not answer, and `error` says why.
        basis: what its answer rests on, where that is not its own watermark.
        false_alarm_rate: what it promises: of texts without a mark, at most this share is found.
    """

    address: str
    verdict: str | None = None
    basis: str | None = None
    false_alarm_rate: float | None = None
    words: str | None = None
    error: str | None = None


def ask(
    file: Annotated[str, typer.Argument(help="A file of any kind that `ttmark detect` reads, or -.")],
    addresses: Annotated[
        list[str] | None,
        typer.Argument(
            help="Detection services, as https://detect.example.org; left out: those that the text names."
        ),
    ] = None,
    token: Annotated[
        list[str] | None,
        typer.Option(help="HOST=FILE: a file with the access token for that host; may be repeated."),
    ] = None,
    plain_http: PlainHttp = False,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds until each has answered, from the first byte to the last.")
    ] = 60.0,
    fail_on_found: Annotated[
        bool, typer.Option("--fail-on-found", help="Exit code 3 where one of them finds a mark.")
    ] = False,
    as_json: JsonOutput = False,
) -> None:
    """Ask several deployments at once whether a text is theirs, by their public routes.

    Each says what it promises in /.well-known/text-provenance.json. The text is sent to all of them. Without
    addresses these are the deployments that its label or C2PA manifest names, over https and at public
    addresses alone. Anybody can write one into a text: what such a deployment answers is its own word.

    Exit codes: 0: all answered. 1: one did not. 2: bad usage. 3: with --fail-on-found, one found a mark.
    """
    from ttmark.detect_service.features.files.commands.input_files import (
        read_text,  # has settings, which other commands start without
    )

    named = addresses or []
    if len(named) > _MOST_ADDRESSES:
        raise typer.BadParameter(f"name at most {_MOST_ADDRESSES} addresses")
    with bad_usage():
        named = list(dict.fromkeys(web_address(address) for address in named))
    tokens = _tokens(token or [])
    with one_line_errors():
        text = read_text(file)
    followed = [] if named else signposts(text)
    if not named and not followed:
        raise typer.BadParameter(f"{shown(file)} names no deployment: name the addresses to ask")
    for address in followed:
        typer.echo(f"ttmark: {shown(file)} names {address}, which is asked", err=True)
    addresses = named or followed
    hosts = {urlsplit(address).netloc for address in addresses}
    if unknown := tokens.keys() - hosts:
        raise typer.BadParameter(f"--token names {', '.join(sorted(unknown))}, which is not asked")
    asked = {address: tokens.get(urlsplit(address).netloc) for address in addresses}
    how: dict[str, Any] = {"plain_http": plain_http, "public_only": bool(followed)}
    with one_line_errors():
        replies = blocking(_replies(asked, text, timeout, how))
    _show(replies, as_json=as_json)
    if fail_on_found and any(reply.verdict == "found" for reply in replies):
        raise typer.Exit(FOUND_CODE)
    if any(reply.verdict is None for reply in replies):
        raise typer.Exit(1)


def _tokens(named: list[str]) -> dict[str, str]:
    tokens = {}
    for one in named:
        host, separator, path = one.partition("=")
        if not separator or not host or not path:
            raise typer.BadParameter("--token takes HOST=FILE")
        with one_line_errors():
            tokens[host] = read_bytes(path).decode("ascii", "replace").strip()
    return tokens


async def _replies(asked: dict[str, str | None], *question: Any) -> list[_Reply]:
    return await asyncio.gather(*(_reply(address, token, *question) for address, token in asked.items()))


async def _reply(address: str, token: str | None, text: str, seconds: float, how: dict[str, Any]) -> _Reply:
    """One deployment's answer by the end of this time. A stranger's words are cut, and shown in one line."""
    asked: dict[str, Any] = {"retries": 1, "patience": 0.0, "most_bytes": _MOST_BYTES, **how}
    try:
        client = AsyncClient(address, token, timeout=seconds, **asked)
        async with asyncio.timeout(seconds), client:
            promised = (await client.text_provenance()).false_alarm_rate
            answer = await client.detect_public(text)
    except TimeoutError:
        return _Reply(address, error=f"no whole answer within {seconds:g} s")
    except ClientError as error:
        return _Reply(address, error=in_one_line(str(error))[:_LONGEST_WORDS])
    said = f"{answer.message.headline}. {answer.message.explanation}"
    words, basis = in_one_line(said)[:_LONGEST_WORDS], answer.basis and in_one_line(answer.basis)[:64]
    return _Reply(address, answer.verdict, basis, promised, words)


def _show(replies: list[_Reply], *, as_json: bool) -> None:
    if as_json:
        for reply in replies:
            typer.echo(json.dumps({k: v for k, v in asdict(reply).items() if v is not None}))
        return
    answered = [reply for reply in replies if reply.verdict is not None]
    if answered:
        rows = [
            {
                "deployment": reply.address,
                "verdict": reply.verdict or "",
                "basis": reply.basis or "watermark",
                "promised false alarms": f"at most {reply.false_alarm_rate:.2g}",
            }
            for reply in answered
        ]
        print_table(rows, named=True)
    for reply in answered:
        typer.echo(f"{reply.address}: {reply.words}")
    for reply in replies:
        if reply.error is not None:
            typer.echo(f"ttmark: {reply.address}: {reply.error}", err=True)
    if len(answered) > 1:
        total = min(1.0, sum(reply.false_alarm_rate or 0.0 for reply in answered))
        typer.echo(
            f"As they promise, of texts without any of these marks at most {total:.2g} are found"
            " by one or more."
        )


def add(groups: Mapping[str, typer.Typer]) -> None:
    """Adds the commands to those of `ttmark`."""
    groups[""].command()(ask)
