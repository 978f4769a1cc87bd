"""docs/reference/http-*.md, from the OpenAPI descriptions of both services."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from fastapi import FastAPI

from ttmark.detect_service.api.app import create_detection_app
from ttmark.detect_service.backend import DetectionBackend, TokenizerSet
from ttmark.detect_service.cases.case_store import CaseRoom
from ttmark.detect_service.cases.desk import KeptCases
from ttmark.detect_service.cases.sqlite_cases import SqliteCases
from ttmark.detect_service.jobs.jobs import Jobs
from ttmark.detect_service.jobs.sqlite_jobs import SqliteJobs
from ttmark.detect_service.queue.desk import KeptQueue
from ttmark.detect_service.queue.sqlite_queue import SqliteQueue
from ttmark.gen_service.api.app import create_generation_app
from ttmark.gen_service.api.backend import GenerationBackend
from ttmark.shared.cases.case_key import CaseKey
from ttmark.shared.counted import counted
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.health import Readiness
from ttmark.shared.keys.cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.vault.kek import KEK_BYTES, KeyEncryptionKey
from ttmark.shared.vault.sqlite_store import SqliteStore

HEADER = """\
# {title}: HTTP

Every route and every field (written by `python -m tests.harness.reference` from the service's OpenAPI
description). A running service gives the same as JSON at `/openapi.json`. Requests carry
`Authorization: Bearer TOKEN`; `/healthz`, `/readyz` and `/metrics` need none. What the fields do, at length:
[{guide}](../{guide}.md).
"""
BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {}",
    "maxLength": "at most {}",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "pattern": "matches `{}`",
}
ANSWERS = ("| status | answer | when |", "|---|---|---|")
SHARED_BY = 3
"""An error that so many routes answer in the same words stands in one table for all."""
ALIKE = 4
"""So many fields that another schema has in the same words are named and not told again."""
UNREAD = "Accepted and not looked at."
COUNTED = {"minLength": "character", "maxLength": "character", "minItems": "item", "maxItems": "item"}
Schema = Mapping[str, Any]


def http_pages() -> dict[str, str]:
    """Pages by file name."""
    return {
        "http-generation.md": http_page(_generation(), "generation"),
        "http-detection.md": http_page(_detection(), "detection"),
    }


def http_page(app: FastAPI, guide: str) -> str:
    """All routes of an application, then all schemas that they name."""
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
    errors = [
        line for (status, line), times in sorted(answers.items()) if times >= SHARED_BY and status >= "400"
    ]
    parts = [HEADER.format(title=guide.capitalize(), guide=guide), "\n## Routes\n"]
    parts += [_route(method, path, operation, errors) for method, path, operation in operations]
    parts += ["\n## Errors of many routes\n\n", "\n".join([*ANSWERS, *errors]), "\n\n## Schemas\n"]
    told: dict[str, dict[str, str]] = {}
    for name, schema in sorted(description["components"]["schemas"].items()):
        parts.append(_schema(name, schema, told))
    return "".join(parts)


def _answer(status: str, answer: Schema) -> str:
    return f"| {status} | {_cell(_kinds(answer))} | {_cell(answer['description'])} |"


def _kinds(answer: Schema) -> str:
    return ", ".join(
        f"{_kind(content['schema'])} as `{kind}`" if content.get("schema") else f"`{kind}`"
        for kind, content in answer.get("content", {}).items()
    )


def _route(method: str, path: str, operation: Schema, shared: Collection[str]) -> str:
    lines = [f"\n### {method} {path}\n", operation["description"], ""]
    body = operation.get("requestBody", {}).get("content", {})
    lines += [f"Body: {_kind(content['schema'])} as `{kind}`.\n" for kind, content in body.items()]
    if parameters := operation.get("parameters"):
        lines += ["| parameter | in | type | meaning |", "|---|---|---|---|"]
        for one in parameters:
            kind, meaning = _cell(_kind(one["schema"])), _meaning(one["schema"], one)
            lines.append(f"| `{one['name']}` | {one['in']} | {kind} | {meaning} |")
        lines.append("")
    answers = {_answer(status, one): status for status, one in sorted(operation["responses"].items())}
    own = [line for line in answers if line not in shared]
    if [answers[line] for line in own] == ["200"]:
        lines.append(f"Answer: {_kinds(operation['responses']['200'])}.")
    else:
        lines += [*ANSWERS, *own]
    if others := ", ".join(status for line, status in answers.items() if line in shared):
        lines.append(f"\nAlso {others} ([errors](#errors-of-many-routes)).")
    return "\n".join(lines) + "\n"


def _schema(name: str, schema: Schema, told: dict[str, dict[str, str]]) -> str:
    """Fields in a table.

    Args:
        told: the rows that each schema so far shows, by field; those of this one are put in.
    """
    lines = [f"\n### {name}\n"]
    if "description" in schema:
        lines.append(" ".join(schema["description"].split()) + "\n")
    required = schema.get("required", ())
    rows = {}
    for field, one in schema.get("properties", {}).items():
        default = "required" if field in required else _default(one)
        rows[field] = f"| `{field}` | {_cell(_kind(one))} | {default} | {_meaning(one, one)} |"
    alike = {
        other: [field for field in rows if theirs.get(field) == rows[field]] for other, theirs in told.items()
    }
    unread = [field for field, row in rows.items() if row == f"| `{field}` | any |  | {UNREAD} |"]
    source = max(alike, key=lambda other: len(alike[other]), default=name)
    same = alike[source] if len(alike.get(source, ())) >= ALIKE else []
    told[name] = {field: row for field, row in rows.items() if field not in same}
    if own := [row for field, row in rows.items() if field not in {*same, *unread}]:
        lines += ["| field | type | default | meaning |", "|---|---|---|---|", *own, ""]
    if names := [field for field in same if field not in unread]:
        lines.append(f"As in [{source}](#{source.lower()}): {_names(names)}.\n")
    if unread:
        lines.append(f"{UNREAD.rstrip('.')}: {_names(unread)}.\n")
    return "\n".join(lines)


def _names(fields: Sequence[str]) -> str:
    return ", ".join(f"`{field}`" for field in fields)


def _default(schema: Schema) -> str:
    value = schema.get("default")
    return "" if value is None else f"`{json.dumps(value)}`"


def _kind(schema: Schema) -> str:
    """A type in words, with a link to each schema that it names."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            kinds = [_kind(one) for one in schema[choice] if one.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def _bounds(schema: Schema) -> Iterator[str]:
    for one in (schema, *schema.get("anyOf", ())):
        for bound, text in BOUNDS.items():
            if bound in one:
                noun = COUNTED.get(bound)
                yield text.format(counted(one[bound], noun) if noun else one[bound])


def _meaning(schema: Schema, described: Schema) -> str:
    words = described.get("description", "").split()
    if bounds := ", ".join(dict.fromkeys(_bounds(schema))):
        words.append(f"({bounds})")
    return _cell(" ".join(words))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _generation() -> FastAPI:
    nothing = cast(Any, None)
    return create_generation_app(GenerationBackend({}, nothing), AppOptions(authenticate=nothing))


def _detection() -> FastAPI:
    """With every route that a setting can switch on; nothing is opened."""
    nothing = cast(Any, None)
    kek, unopened = KeyEncryptionKey(bytes(KEK_BYTES)), Path("not opened")
    cache = KeyCache(KeyRing(SqliteStore(unopened), kek))
    return create_detection_app(
        DetectionBackend(cache, TokenizerSet([]), max_document_tokens=1),
        AppOptions(authenticate=nothing),
        readiness=lambda: Readiness({}),
        jobs=Jobs(SqliteJobs(unopened, lease_seconds=1), kek, nothing),
        case_key=CaseKey.generate(),
        kept_cases=KeptCases(SqliteCases(unopened), kek, 1, CaseRoom(1, 1), 1),
        queue=KeptQueue(SqliteQueue(unopened), kek, bytes(32), 1, 1),
    )
