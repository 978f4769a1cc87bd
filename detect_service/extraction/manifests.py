"""C2PA manifests, read where strangers' files are read: `shared/manifests/report.py` in a worker process."""

import base64
import json

from ttmark.detect_service.extraction.extraction import Extraction
from ttmark.shared.manifests.report import manifest_report

# No name that a request can give a file: such names have an ending.
MANIFEST = ":manifest"


def manifest_request(manifest: bytes, anchors: str | None) -> bytes:
    """What a worker is given in place of a file; `anchors` are the trusted certificates in PEM."""
    return json.dumps({"manifest": base64.b64encode(manifest).decode(), "anchors": anchors}).encode()


def answer_manifest(content: bytes) -> Extraction:
    """The worker's answer to it: the report in JSON in place of a text."""
    asked = json.loads(content)
    report = manifest_report(base64.b64decode(asked["manifest"]), asked["anchors"])
    return Extraction(report.model_dump_json())
