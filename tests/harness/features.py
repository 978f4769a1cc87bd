"""Which modules belong to which optional feature: who asks a text about a mark needs none of them.

    python -m tests.harness.features > tests/unit/architecture/importers.yml

A module stands under one feature, by its path or by that of its folder. What is in no list is the core, or
stands beside it (command line, client, settings, words, evaluation).
"""

from functools import cache

import yaml

from tests.harness.imports import PACKAGES, ROOT, imports_between, module_name, sources

FEATURES: dict[str, tuple[str, ...]] = {
    "audit": (
        "shared/audit/",
        "shared/vault/audit_events.py",
        "detect_service/api/metrics_and_audit.py",
        "services/cli/audit.py",
    ),
    "bulk": ("detect_service/bulk/", "services/bulk_detection.py", "services/cli/bulk.py"),
    "canary": ("services/canary.py", "services/settings/canary.py"),
    "cases": (
        "detect_service/cases/",
        "services/cli/case.py",
        "shared/cases/",
    ),
    "console": ("detect_service/console/",),
    "conversation": (
        "detect_service/conversation/",
        "services/cli/detect_conversation.py",
    ),
    "demo": (
        "gen_service/demo_model/",
        "gen_service/smollm2/",
        "services/cli/demonstration.py",
        "services/local/smollm2.py",
    ),
    "files": (
        "detect_service/extraction/",
        "detect_service/provenance_checks/",
        "services/cli/detect_files.py",
        "shared/schemas/extraction.py",
    ),
    "foreign": ("detect_service/foreign/", "shared/watermark/foreign/"),
    "idempotency": ("detect_service/idempotency/",),
    "jobs": (
        "detect_service/jobs/",
        "services/cli/job_documents.py",
        "services/cli/jobs.py",
        "shared/schemas/jobs.py",
    ),
    "key_export": ("services/cli/key_import.py",),
    "labels": ("shared/labels.py",),
    "manifests": (
        "detect_service/manifests/",
        "gen_service/api/provenance.py",
        "shared/manifests/",
        "shared/schemas/manifests.py",
    ),
    "oidc": ("shared/access/oidc.py",),
    "paper": (
        "detect_service/paper/",
        "shared/watermark/detectors/localized.py",
        "shared/watermark/detectors/scan.py",
        "shared/watermark/detectors/segments.py",
        "shared/watermark/detectors/waterseeker.py",
    ),
    "playground": ("gen_service/playground/",),
    "policy": ("gen_service/api/marking_policy.py",),
    "public": (
        "detect_service/public/",
        "shared/limits/public_allowance.py",
        "shared/schemas/public.py",
    ),
    "reader": ("detect_service/model_reader/",),
    "readings": ("gen_service/api/readings.py",),
    "responses": (
        "gen_service/api/responses_format.py",
        "shared/schemas/responses.py",
        "shared/schemas/responses_request.py",
    ),
    "spent": (
        "detect_service/spent/",
        "shared/limits/spent_evidence.py",
    ),
    "structured": (
        "gen_service/api/reasoning.py",
        "gen_service/api/structured_outputs.py",
        "gen_service/api/answer_marks.py",
        "gen_service/api/call_reader.py",
        "gen_service/api/learned_format.py",
        "gen_service/api/tagged_grammar.py",
        "gen_service/api/tagged_values.py",
        "gen_service/api/tool_calls.py",
        "gen_service/api/tool_formats.py",
        "gen_service/api/tools.py",
        "gen_service/decoding/grammar.py",
        "gen_service/decoding/json_grammar.py",
        "shared/schemas/tools.py",
    ),
    "vllm": ("gen_service/vllm_engine/",),
}


def feature_of(path: str) -> str | None:
    """The feature that a module belongs to, by its path below the root of the tree."""
    return next((name for name, homes in FEATURES.items() if path.startswith(homes)), None)


@cache
def importers() -> dict[str, list[str]]:
    """By feature: the modules outside it that import one of its own, inside functions too."""
    paths = {module_name(path): str(path.relative_to(ROOT)) for path in sources()}
    found: dict[str, set[str]] = {name: set() for name in FEATURES}
    for module, others in imports_between(PACKAGES).items():
        for other in others:
            feature = feature_of(paths[other])
            if feature is not None and feature != feature_of(paths[module]):
                found[feature].add(paths[module])
    return {feature: sorted(modules) for feature, modules in found.items()}


if __name__ == "__main__":
    print("# By feature: who imports it from outside. No line is added; one that is no longer true goes.")
    print(yaml.safe_dump(importers()), end="")
