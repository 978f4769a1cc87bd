"""docs/reference/http-*.md, from the OpenAPI descriptions of both services.

sphinxcontrib-openapi 0.10 leaves out the body of `POST /v1/detect`, and all but one alternative of a choice.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from fastapi import FastAPI

from ttmark.detect_service.api.app import create_detection_app
from ttmark.detect_service.ask import Means
from ttmark.detect_service.documents.backend import DetectionBackend, TokenizerSet
from ttmark.detect_service.features.cases.service import cases
from ttmark.detect_service.features.files.service import files
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
from ttmark.detect_service.features.jobs.sealed_jobs import Jobs
from ttmark.detect_service.features.jobs.service import background_jobs
from ttmark.detect_service.features.jobs.sqlite_jobs import SqliteJobs
from ttmark.detect_service.features.paper import service as paper
from ttmark.gen_service.api.app import create_generation_app
from ttmark.gen_service.api.plan.backend import GenerationBackend
from ttmark.services.composition.served_models import open_features
from ttmark.services.settings.generation import GenerationSettings
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.health import Readiness
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.languages.words import counted
from ttmark.shared.signed_files.signed_file import CaseKey
from ttmark.shared.vault.kek import KEK_BYTES, KeyEncryptionKey
from ttmark.shared.vault.stores.sqlite_store import SqliteStore

HEADER = """\
# {title}: HTTP

Every route, from the service's `/openapi.json`, which also has what is left out here: OpenAI's own answers,
schemas without a link, what fields after "Also" mean, fields that take one value alone, plain types.
How to use it: [{guide}](../{guide}.md).
Requests carry `Authorization: Bearer TOKEN`; `/healthz`, `/readyz` and `/metrics` need none. Bodies are JSON.
\\* marks what a request needs and what an answer always has.
"""
ERRORS = {"generation": "They have [codes](../generation.md#errors), in an `ErrorEnvelope`.\n"}
"""Of a service whose guide tells them all."""
NAME_ALONE = re.compile(r" \((list of )?`[A-Z]\w+`\)")
"""The kind of a field that is named alone, where the page has no section of it."""
HEADER_LIKE = """\
# {title}: HTTP

Every route, as the page of [{other}](http-{other}.md) has them. How to use it: [{guide}](../{guide}.md).
"""
SHARED_BY = 3
"""An error that so many routes answer in the same words is told once for all."""
ALIKE = 30
"""Fields that another schema has in the same words, so many or more, are named and not told again."""
UNREAD = "Accepted and not looked at."
EMPTY = "Always empty."
COUNTING = "0 for the first event of the stream, then one more each."
PROGRAMS_OWN = ("HTTPValidationError", "ValidationError", "JsonValue")
"""Schemas that the framework adds; no route answers the first two."""
OPENAIS = re.compile(
    "(Assistant|Output)Message|Chat(ChunkChoice|Response)|Completion(Choice|Response)|FunctionTool|MadeFunction"
    "|NamedSchema|Output(Call|Reasoning)|ResponseObject|SchemaFormat|StreamOptions|TextOptions"
)
"""Schemas that OpenAI's documentation has, but for the fields `watermark` and `watermarked`."""
NO_BOUND = 2**31 - 1
"""A greatest number that only keeps to the machine's integers tells a reader nothing."""
LONGEST_PATTERN = 40
NAMES = 2
"""What names more values than this has a line of its own."""
LINES_OF_A_HEAD = 2
ONE_VALUE = re.compile(r"`[^`]*`")
EVIDENT = 18
"""A field of an answer with so few words that say what it is, or fewer, is named alone."""
BRIEF = 20
"""A parameter with more words than this is told at one route alone."""
JSON = "application/json"
REFERENCE = r"#/components/schemas/(\w+)"
SECTION = r"(?m)(?=^\n### )"
OF_OPENAPI = re.compile(r"(list of )*(string|integer|number|boolean|object|any)")
"""Kinds that tell a reader of the page no more than the field's name does."""
WITH_DEFAULT = re.compile(r"^(string|integer|number|boolean), (?=.*default `)|^string$|^number, ")
"""What a kind begins with where default or bounds say the same, or where it is a text."""
Schema = Mapping[str, Any]


def http_pages() -> dict[str, str]:
    shown: dict[str, dict[str, str]] = {}
    detection = http_page(_detection(), "detection", shown)
    generation = _without(http_page(_generation(), "generation", dict(shown)), detection, "detection")
    like = HEADER_LIKE.format(title="Generation", guide="generation", other="detection")
    generation = generation.replace(HEADER.format(title="Generation", guide="generation"), like)
    for name in shown:
        if f"\n### {name}\n" not in generation:
            generation = generation.replace(f"(#{name.lower()})", f"(http-detection.md#{name.lower()})")
    return {"http-generation.md": generation, "http-detection.md": detection}


def _without(page: str, other: str, guide: str) -> str:
    """The page less the sections that another one has word for word; links to these lead there."""
    head, *sections = re.split(SECTION, page)
    there = {section.strip() for section in re.split(SECTION, other)}
    same = [title for section in sections if section.strip() in there for title in section.splitlines()[1:2]]
    page = head + "".join(section for section in sections if section.strip() not in there)
    for title in (title.removeprefix("### ") for title in same):
        page = page.replace(f"[{title}](#{title.lower()})", f"[{title}](http-{guide}.md#{title.lower()})")
    routes = [f"`{title.removeprefix('### ')}`" for title in same if " " in title.removeprefix("### ")]
    told = f"{', '.join(routes)}: as of [{guide}](http-{guide}.md#routes)."
    return page.replace("## Routes\n", f"## Routes\n\n{told}\n")


def http_page(app: FastAPI, guide: str, shown: dict[str, dict[str, str]]) -> str:
    """All routes of an application, then the schemas that say more than that.

    Args:
        shown: the lines of the schemas of earlier pages, by field; those of this one are put in.
    """
    description = app.openapi()
    operations = [
        (method.upper(), path, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    answers = Counter(
        (status, _answer(status, answer))
        for *_, operation in operations
        for status, answer in operation["responses"].items()
    )
    shared = [
        line for (status, line), times in sorted(answers.items()) if times >= SHARED_BY and status >= "400"
    ]
    parts = [HEADER.format(title=guide.capitalize(), guide=guide)]
    parts.append("\n## Routes\n")
    told: dict[str, str] = {}
    parts += [_route(method, path, operation, shared, told) for method, path, operation in operations]
    if guide in ERRORS:
        parts += ["\n## Errors of many routes\n\n", ERRORS[guide], "\n## Schemas\n"]
    else:
        parts += ["\n## Errors of many routes\n\n", *_said_once(shared), "\n## Schemas\n"]
    schemas = description["components"]["schemas"]
    asked = _reached([operation.get("requestBody") for *_, operation in operations], schemas)
    for name, schema in sorted(schemas.items()):
        typed = name in asked
        if name not in PROGRAMS_OWN and not OPENAIS.fullmatch(name) and not _is_plain(schema, typed):
            parts.append(_schema(name, schema, shown, typed))
    page = "".join(parts)
    bare = schemas.keys() - shown.keys()
    page = re.sub(r"\[(\w+)\]\(#\w+\)", lambda link: f"`{link[1]}`" if link[1] in bare else link[0], page)
    return NAME_ALONE.sub("", page)


def _reached(part: object, schemas: Mapping[str, Schema]) -> set[str]:
    """The names of the schemas that a part of a description leads to."""
    found: set[str] = set()
    due = set(re.findall(REFERENCE, json.dumps(part)))
    while due:
        found |= due
        due = set(re.findall(REFERENCE, json.dumps([schemas[name] for name in due]))) - found
    return found


def _said_once(errors: Sequence[str]) -> Iterator[str]:
    """The list of errors, and before it what all of them answer with."""
    kinds = {line.rpartition(". ")[2] for line in errors if line}
    body = next(iter(kinds)) if len(kinds) == 1 else ""
    yield f"A route answers those that fit it{f', with {body}' if body else '.'}\n\n"
    yield from (line.removesuffix(f" {body}") + "\n" for line in errors if line)


def _answer(status: str, answer: Schema) -> str:
    """A line of a list; of what the framework alone would answer an empty one."""
    if PROGRAMS_OWN[0] in str(answer):
        return ""
    kinds = _kinds(answer)
    words = answer["description"].rstrip(".")
    said = "" if words == "Successful Response" else f" {words}."
    return f"- {status}:{said}" + (f" {kinds}." if kinds else " nothing." if not said else "")


def _kinds(answer: Schema) -> str:
    return ", ".join(
        " as ".join(part for part in (_kind(content.get("schema", {})), f"`{kind}`") if part != "any")
        if kind != JSON
        else _kind(content["schema"])
        for kind, content in answer.get("content", {}).items()
    )


def _route(method: str, path: str, operation: Schema, shared: Collection[str], told: dict[str, str]) -> str:
    """What one route does, takes and answers; its parameters that no route before had are put into `told`."""
    bodies = operation.get("requestBody", {}).get("content", {}).values()
    taken = " or ".join(_kind(content["schema"]) for content in bodies)
    answers = {status: _answer(status, one) for status, one in sorted(operation["responses"].items())}
    given = ", ".join(
        answers.pop(status).removeprefix("- 200: ").removeprefix("- ").rstrip(".")
        for status in [*answers]
        if status < "400"
    )
    way = f"{taken} → {given}.".lstrip()
    lines = [f"\n### {method} {path}\n", f"{operation['description']} {way}", ""]
    for one in operation.get("parameters", ()):
        if one["in"] == "path" and "description" not in one:
            continue
        needed = "\\*" if one.get("required") else ""
        line = _field(f"`{one['name']}`{needed} ({one['in']})", one["schema"], one)
        first = told.setdefault(line, f"{method} {path}")
        same = first != f"{method} {path}" and len(line.split()) > BRIEF
        lines.append(f"- `{one['name']}`: as of {first}." if same else line)
    lines += [line for line in answers.values() if line and line not in shared]
    return "\n".join(lines).rstrip() + "\n"


def _schema(name: str, schema: Schema, shown: dict[str, dict[str, str]], typed: bool) -> str:
    """Fields in a list: those with a meaning one by one (`typed`: with plain types), the others by type."""
    lines = [f"\n### {name}\n"]
    if "description" in schema:
        lines.append(" ".join(schema["description"].split()) + "\n")
    fields = {name: one for name, one in schema.get("properties", {}).items() if not _is_alone(one)}
    needed = schema.get("required", ())
    names = {field: f"`{field}`" + ("\\*" if field in needed else "") for field in fields}
    rows = {field: _field(names[field], one, one, typed) for field, one in fields.items()}
    alike = {
        other: [field for field in rows if theirs.get(field) == rows[field]]
        for other, theirs in shown.items()
    }
    told = {other: sum(len(rows[field].split()) for field in fields) for other, fields in alike.items()}
    source = max(told, key=lambda other: told[other], default=name)
    same = alike[source] if told.get(source, 0) >= ALIKE else []
    if same and source == name:
        return ""
    if same:
        left = [field for field in shown[source] if field not in same]
        shorter = f"All of [{source}](#{source.lower()})" + (f" but {_names(left)}" if left else "")
        listed = f"As in [{source}](#{source.lower()}): {_names(same)}"
        lines.append("- " + min(shorter, listed, key=lambda words: len(words.split())) + ".")
    shown[name] = rows
    untold: list[str] = []
    for field, row in rows.items():
        if field in same:
            continue
        if _says_little(fields[field], typed):
            kind = _kind(fields[field])
            untold.append(names[field] + f" ({kind})" * (OF_OPENAPI.fullmatch(kind) is None))
        else:
            lines.append(row)
    if untold:
        lines.append(f"{'- Also ' if len(lines) > LINES_OF_A_HEAD else ''}{', '.join(untold)}.")
    return "\n".join(lines) + "\n"


def _is_plain(schema: Schema, typed: bool) -> bool:
    """Whether no field has anything to say beyond its name, type and bounds, or of an answer a few words."""
    return all(
        field.get("description", UNREAD) in (UNREAD, EMPTY, COUNTING)
        or (not typed and _says_little(field, typed))
        for field in schema.get("properties", {}).values()
    )


def _is_alone(field: Schema) -> bool:
    """Whether a field takes one value alone, which it says nothing of, or any that nobody looks at."""
    if "description" in field:
        return field["description"] in (UNREAD, EMPTY) or "const" in field
    empty = any(one.get("maxItems") == 0 for one in (field, *field.get("anyOf", ())))
    return empty or _kind(field) == "null" or ONE_VALUE.fullmatch(_kind(field)) is not None


def _says_little(field: Schema, typed: bool) -> bool:
    """Whether a field of a request has nothing to tell, or one of an answer a few words alone."""
    meaning = field.get("description", "")
    if not typed:
        return len(meaning.split()) <= EVIDENT and meaning.count("`") <= 2 * NAMES
    return not (meaning or field.get("default") is not None or any(_bounds(field)))


def _names(fields: Sequence[str]) -> str:
    return ", ".join(f"`{field}`" for field in fields)


def _field(name: str, schema: Schema, described: Schema, typed: bool = True) -> str:
    """A line of a list: type (`typed`: a plain one too), bounds, default and meaning."""
    kind = ", ".join((_kind(schema), *dict.fromkeys(_bounds(schema))))
    default = schema.get("default") if typed else None
    if default not in (None, schema.get("const")):
        kind += f", default `{json.dumps(default)}`"
    kind = WITH_DEFAULT.sub("", kind)
    meaning = " ".join(described.get("description", "").split())
    if meaning and not typed and OF_OPENAPI.fullmatch(kind):
        return f"- {name}: {meaning}"
    return f"- {name}: {' '.join(filter(None, (f'{kind}.' * bool(kind), meaning)))}"


def _kind(schema: Schema) -> str:
    """A type in words, with a link to each schema that it names."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return "any" if name in PROGRAMS_OWN else f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{_constant(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{_constant(one)}`" for one in schema["enum"])
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            kinds = [_kind(one) for one in schema[choice] if one.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def _constant(value: object) -> str:
    """As JSON, words without their quotes."""
    return value or '""' if isinstance(value, str) else json.dumps(value)


def _bounds(schema: Schema) -> Iterator[str]:
    for one in (schema, *schema.get("anyOf", ())):
        if "exclusiveMinimum" in one:
            yield f"above {one['exclusiveMinimum']:g}"
        for noun, least, most in (
            ("character", "minLength", "maxLength"),
            ("item", "minItems", "maxItems"),
            ("", "minimum", "maximum"),
        ):
            yield from _range(one.get(least), one.get(most), noun)
        if len(pattern := one.get("pattern", "")) in range(1, LONGEST_PATTERN):
            yield f"matches `{pattern}`"


def _range(least: float | None, most: float | None, noun: str) -> Iterator[str]:
    """The words for two bounds of which each may be missing."""
    if most is not None and most >= NO_BOUND:
        most = None
    low, high = (
        None if bound is None else counted(int(bound), noun) if noun else f"{bound:g}"
        for bound in (least, most)
    )
    if noun and low == counted(1, noun) and high is None:
        yield "not empty"
    elif least is not None and most is not None:
        yield f"{least:g} to {high}"
    elif high is not None:
        yield f"at most {high}"
    elif low is not None:
        yield f"at least {low}"


def _generation() -> FastAPI:
    nothing = cast(Any, None)
    backend, features = GenerationBackend({}, nothing), open_features(GenerationSettings())
    return create_generation_app(backend, AppOptions(authenticate=nothing), features=features)


def _detection() -> FastAPI:
    """With every route that a setting can switch on; nothing is opened."""
    nothing = cast(Any, None)
    kek, unopened = KeyEncryptionKey(bytes(KEK_BYTES)), Path("not opened")
    cache = KeyCache(KeyRing(SqliteStore(unopened), kek))
    jobs = Jobs(SqliteJobs(unopened, lease_seconds=1), kek, nothing)
    return create_detection_app(
        Means(DetectionBackend(cache, TokenizerSet([]), max_document_tokens=1)),
        AppOptions(authenticate=nothing),
        readiness=lambda: Readiness({}),
        features=[
            cases(CaseKey.generate()),
            files(ExtractionWorkers()),
            background_jobs(jobs),
            paper.FEATURE,
        ],
    )
