"""`python open_responses.py URL TOKEN MODEL`: questions of the Open Responses compliance suite, in our words.

The suite (github.com/openresponses/openresponses, `bin/compliance-test.ts`) is on no package registry; its
schema is, as `openresponses-types`. Prints what each answer, and each event of a stream, breaks.
"""

import json
import sys
from typing import Any

import httpx
import openresponses_types  # type: ignore[import-not-found, unused-ignore]
from openresponses_types import ResponseResource
from pydantic import ValidationError

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    {"type": "function", "name": "weather", "description": "The weather of a city.", "parameters": CITY},
    {"type": "function", "name": "now", "parameters": {"type": "object", "properties": {}}},
]
HEART = "data:image/png;base64,iVBORw0KGgo="


def said(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


WORDS = {"input": [said("user", "Say hello in three words.")]}
CALL = {"input": [said("user", "How is the weather in Rome?")], "tools": TOOLS}
SYSTEM = {"input": [said("system", "You are a pirate."), said("user", "Say hello.")]}
TURNS = {
    "input": [
        said("user", "My name is Ann."),
        said("assistant", "Hello Ann, how can I help?"),
        said("user", "What is my name?"),
    ]
}
PICTURE = {"input": [said("user", [{"type": "input_image", "image_url": HEART}])]}


def schemas() -> dict[str, Any]:
    """The classes of events by their type, an enumeration of one member."""
    named = {
        name: kind for name, kind in vars(openresponses_types).items() if name.endswith("StreamingEvent")
    }
    return {next(iter(kind.model_fields["type"].annotation)).value: kind for kind in named.values()}


def problems(kind: Any, document: Any) -> list[str]:
    """What of a document its schema does not allow."""
    try:
        kind.model_validate(document)
    except ValidationError as error:
        return [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    return []


def asked(client: httpx.Client, body: dict[str, Any], output: str) -> list[str]:
    """What is wrong with an answer that should be completed, with an item of the type `output`."""
    answer = client.post("/responses", json=body)
    if answer.status_code != httpx.codes.OK:
        return [f"{answer.status_code}: {answer.text}"]
    document = answer.json()
    found = problems(ResponseResource, document)
    if document["status"] != "completed" or output not in {item["type"] for item in document["output"]}:
        found.append(f"{document['status']}: {document['output']}")
    return found


def streamed(client: httpx.Client, body: dict[str, Any], output: str) -> list[str]:
    """Likewise, event by event."""
    kinds, found, seen = schemas(), [], list[str]()
    with client.stream("POST", "/responses", json={**body, "stream": True}) as lines:
        events = [json.loads(line[6:]) for line in lines.iter_lines() if line.startswith("data: {")]
    for event in events:
        seen.append(event["type"])
        kind = kinds.get(event["type"])
        found += (
            ["no such event"] if kind is None else [f"{seen[-1]} {each}" for each in problems(kind, event)]
        )
    wanted = ["response.created", "response.output_item.added", "response.output_item.done"]
    if output == "function_call":
        wanted += [f"response.function_call_arguments.{end}" for end in ("delta", "done")]
    missing = [name for name in [*wanted, "response.completed"] if name not in seen]
    if events[-1]["response"]["output"][-1]["type"] != output:
        missing.append(output)
    return found + [f"missing: {name}" for name in missing]


def main() -> None:
    url, token, model = sys.argv[1:]
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
        of = {"model": model}
        result = {
            "basic-response": asked(client, of | WORDS, "message"),
            "streaming-response": streamed(client, of | WORDS, "message"),
            "system-prompt": asked(client, of | SYSTEM, "message"),
            "multi-turn": asked(client, of | TURNS, "message"),
            "tool-calling": asked(client, of | CALL, "function_call"),
            "tool-calling-streaming": streamed(client, of | CALL, "function_call"),
            "image-input": asked(client, of | PICTURE, "message"),
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
