"""docs/reference/command-line.md, from the commands themselves."""

import re
from collections import Counter
from collections.abc import Collection

import typer
from typer.cli import get_docs_for_click

from ttmark.services.cli.main import app

HEADER = """\
# Command line

Every command with its arguments and options. \\* marks what is needed. `ttmark COMMAND --help` says more: the
order of arguments, bounds, defaults, and what those mean that stand after "Also". What many commands have,
of which {untold} are not named again:

{shared}

"""
NEEDLESS = re.compile(
    r"\*\*(Commands)\*\*:\n\n(\* .*\n)+\n?"  # cut short, as on a terminal
    r"|\* `--(install-completion|show-completion|help|version)`.*\n"
    r"|\*\*Usage\*\*:\n\n```console\n.*\n```\n\n|\*\*(Arguments|Options)\*\*:\n\n"
    r"|(?<=\w) <(str|int|float|path|dir|list\[\w+\]|int range|float range)>(?=`)"
)
OPTION = re.compile(r"^\* `((?:-\w, )?(?:--[\w-]+|[A-Z]+(?=`)))[^\n]*\n", re.M)
UNTOLD = "--json", "--token", "--plain-http", "--url"
"""Of a service's client, or of a command for programs: told once, and at no command in the same words."""
RANGES = re.compile(r"(; | \[)[\d.]*<?=?x[<>]=[\d.]+(?=\])")
MORE = re.compile(r"^(#+ .*\n\n)(.+\n(?:.+\n)*?)\n((?:[^#*\n].*\n+)+)", re.M)
REQUIRED = re.compile(r"^(\* `[^`\n]+`)(:.*?) \[required\]$", re.M)
LIST_ENDS = re.compile(r"\n\* .*\Z")
EVIDENT = re.compile(r"^\* `[^`<\n]+`: (?:\S+ ){0,14}\S+$", re.M)
"""An option that has so few words and no list of values is named alone."""
SHARED_BY = 2
"""An option that so many commands have in the same words is told once for all of them."""


def command_line_page() -> str:
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="ttmark")
    text = get_docs_for_click(obj=command, ctx=context, indent=1, name="ttmark")
    text = re.sub(r"  \[", " [", NEEDLESS.sub("", text))
    text = RANGES.sub(lambda match: " [" * (match[1] == " ["), text).replace(" []", "")
    text = MORE.sub(lambda match: match[1] + match[2] + "\n" + _exit_codes(match[3]), text)
    times = Counter(match[0] for match in OPTION.finditer(text))
    likeliest: dict[str, str] = {}  # of two options with one name the rarer one stays where it is
    for line, _ in times.most_common():
        likeliest.setdefault(line.split("`")[1].split(" <")[0], line)
    shared = {line for line in likeliest.values() if times[line] >= SHARED_BY}
    parts = re.split(r"(?m)^(?=#)", text)
    told = "".join(line for line in times if line in shared).rstrip()
    untold = f"{', '.join(f'`{name}`' for name in UNTOLD[:-1])} and `{UNTOLD[-1]}`"
    page = HEADER.format(shared=told, untold=untold) + "".join(_with_names(part, shared) for part in parts)
    page = REQUIRED.sub(r"\1\\*\2", page)
    return re.sub(r"\n{3,}", "\n\n", page).rstrip() + "\n"


def _with_names(part: str, shared: Collection[str]) -> str:
    """The part of one command, the names alone of options that are told elsewhere."""
    told = {match[1] for line in shared for match in OPTION.finditer(line)}
    named = [
        match
        for match in OPTION.finditer(part)
        if match[0] in shared or (match[1] not in told and _is_evident(match[0].rstrip()))
    ]
    names = [f"`{match[1]}`" for match in named if match[0] not in shared or match[1] not in UNTOLD]
    for match in named:
        part = part.replace(match[0], "", 1)
    part = re.sub(r"(\n\* .*\n)\n(?=\* )", r"\1", part).rstrip()
    if not names:
        return f"{part}\n\n"
    return f"{part}{chr(10) + '* ' if LIST_ENDS.search(part) else ' '}Also {', '.join(names)}.\n\n"


def _is_evident(option: str) -> bool:
    return EVIDENT.match(option) is not None and not option.endswith("[required]")


def _exit_codes(paragraphs: str) -> str:
    """Those paragraphs that tell a program how a command ended."""
    return "".join(f"{one}\n\n" for one in paragraphs.split("\n\n") if "xit code" in one)
