"""`python ask_litellm.py URL...`: asks each service through LiteLLM and prints what came back as JSON.

A process of its own, because importing LiteLLM takes seconds and changes what others in the process see.
"""

import json
import sys
from typing import Any

import litellm

litellm.telemetry = False
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]


def ask(url: str) -> dict[str, Any]:
    """One answer of each kind."""
    request: dict[str, Any] = {
        "model": "openai/tiny",
        "api_base": url + "/v1",
        "api_key": "author",
        "messages": MESSAGES,
        "max_tokens": 12,
        "seed": 5,
        "num_retries": 0,
        "extra_body": {"top_k": 4, "ignore_eos": True},
    }
    whole = litellm.completion(**request)
    chunks = list(litellm.completion(**request, stream=True, stream_options={"include_usage": True}))
    counted = [chunk.usage for chunk in chunks if getattr(chunk, "usage", None)]
    try:
        litellm.completion(**request | {"model": "openai/gpt-9"})
        error = None
    except litellm.NotFoundError as refusal:
        error = str(refusal)
    return {
        "text": whole.choices[0].message.content,
        "finish_reason": whole.choices[0].finish_reason,
        "completion_tokens": whole.usage.completion_tokens,
        "streamed": [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices],
        "streamed_tokens": [usage.completion_tokens for usage in counted],
        "watermark": getattr(whole, "watermark", None),
        "error": error,
    }


if __name__ == "__main__":
    print(json.dumps([ask(url) for url in sys.argv[1:]]))
