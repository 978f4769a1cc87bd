"""Conformance and attack reports: written by `ttmark conformance run` and `attacks`, read by `verify`."""

from collections.abc import Sequence

from ttmark.shared.cases.case_key import CasePublicKey
from ttmark.shared.cases.signed_file import Document, FileRefused, SignedKind

FORMAT = "ttmark-conformance/1"
ATTACKS_FORMAT = "ttmark-attacks/1"
REPORTS = SignedKind("report", (FORMAT, ATTACKS_FORMAT))
JSON_NAME, PAGE_NAME = "report.json", "report.html"


def verified_report(contents: Sequence[bytes], key: CasePublicKey) -> Document:
    """The report that all these files hold.

    Raises:
        FileRefused: one is not signed with `key` or was changed since, or they are of different reports.
    """
    first, *others = [REPORTS.verified(content, key) for content in contents]
    if any(other != first for other in others):
        raise FileRefused("the files are of different reports, each as it was signed")
    return first
