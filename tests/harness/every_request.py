"""One request of every kind to both services, so that all that they do with the system has been done."""

import io
from typing import Any

import docx
import httpx

from tests.harness.forms import PATHS
from tests.harness.hostile_files.pdf import text_page
from tests.harness.observe.services import Bed

_PROMPT = {"prompt": "The command reads the file and", "max_tokens": 64, "seed": 1}


def ask_everything(bed: Bed) -> dict[str, int]:
    """Sends the requests; gives how many of each service were answered."""
    headers = {"Authorization": f"Bearer {bed.setup.token}"}
    answered = {}
    for name, ask in (("gen", _ask_generation), ("detect", _ask_detection)):
        with httpx.Client(base_url=bed.url(name), headers=headers, timeout=240) as client:
            answered[name] = ask(client, bed)
            for path in ("/healthz", "/readyz", "/metrics"):
                client.get(path).raise_for_status()
    return answered


def _ask_generation(client: httpx.Client, bed: Bed) -> int:
    model = {"model": bed.setup.model_id}
    chat = {**model, "messages": [{"role": "user", "content": "Say something."}], "max_tokens": 16}
    held = {**chat, "response_format": {"type": "json_object"}}
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("/v1/completions", {**model, **_PROMPT}),
        ("/v1/chat/completions", chat),
        ("/v1/chat/completions", held),
        ("/v1/responses", {**model, "input": "Say something.", "max_output_tokens": 16}),
    ]
    text = "A text of some words that no model of ours has made. " * 4
    bodies.append(("/v1/readings", {**model, "texts": [text]}))
    bodies.append(("/v1/readings", {**model, "texts": [text], "prompt": "Once", "top_k": 50}))
    for path, body in bodies:
        client.post(path, json=body).raise_for_status()
    with client.stream("POST", "/v1/completions", json={**model, **_PROMPT, "stream": True}) as response:
        response.raise_for_status()
        response.read()
    client.get("/v1/models").raise_for_status()
    return len(bodies) + 2


def _ask_detection(client: httpx.Client, bed: Bed) -> int:
    text = "A text of some words that no model of ours has made. " * 40
    for mode in ("", "/direct", "/aligned", "/localized"):
        documents = [{"text": text}, {"text": text.upper()}]
        client.post(f"/v1/detect{mode}", json={"inputs": documents}).raise_for_status()
    files = {
        "a.txt": text.encode(),
        "a.html": f"<p>{text}".encode(),
        "a.docx": _docx(text),
        "a.pdf": text_page(text[:60].encode()),
    }
    for name, content in files.items():
        for path in PATHS:
            client.post(path, files={"file": (name, content)}).raise_for_status()
    job = client.post("/v1/detect/jobs", json={"mode": "direct", "inputs": [{"text": text}]})
    job.raise_for_status()
    address = job.headers["Location"]
    client.get(address).raise_for_status()
    client.get(f"{address}/results").raise_for_status()
    client.delete(address).raise_for_status()
    client.get("/v1/keys").raise_for_status()
    client.get("/").raise_for_status()
    return 4 + len(files) + 4 + 2


def _docx(text: str) -> bytes:
    document, buffer = docx.Document(), io.BytesIO()
    document.add_paragraph(text)
    document.save(buffer)
    return buffer.getvalue()
