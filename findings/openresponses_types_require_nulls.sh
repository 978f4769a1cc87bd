#!/usr/bin/env bash
# openresponses-types 2.4.0, the published schema of the Open Responses specification: a response that openai 3.57.0's own type
# takes in strict mode is refused, because nine more fields must be there: five that may be null (safety_identifier,
# prompt_cache_key, reasoning, max_tool_calls, completed_at), four that need a value (service_tier, top_logprobs, the penalties).
# Prints what either says; fails if both take it, or both refuse it.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" -q install "openresponses-types==2.4.0" "openai==3.57.0"
"$dir/venv/bin/python" - <<'PY'
from openai.types.responses import Response
from openresponses_types import ResponseResource
from pydantic import ValidationError

text = {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}
message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
answer = {
    "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "error": None,
    "incomplete_details": None, "instructions": None, "max_output_tokens": None, "metadata": {}, "model": "m",
    "output": [message], "parallel_tool_calls": True, "previous_response_id": None, "background": False,
    "store": False, "temperature": 1.0, "top_p": 1.0, "text": {"format": {"type": "text"}},
    "tool_choice": "auto", "tools": [], "truncation": "disabled",
    "usage": {
        "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 1, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
    },
}
print("openai's Response takes it:", Response.model_validate(answer, strict=True).output_text)
try:
    ResponseResource.model_validate(answer)
except ValidationError as error:
    missing = [each["loc"][0] for each in error.errors() if each["type"] == "missing"]
    print("openresponses-types refuses it, missing:", *missing)
    assert len(missing) == len(error.errors()) == 9, "CHANGED"
else:
    raise SystemExit("CHANGED: both take it")
PY
