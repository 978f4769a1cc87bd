"""Case files: written by a service, read by `ttmark case verify`. One byte that differs is one too many."""

from ttmark.shared.cases.signed_file import Document, FileRefused, SignedKind

Case = Document
CaseRefused = FileRefused

FORMAT = "ttmark-case/1"
CASE_START = "{"
"""Of a json case; a page begins otherwise."""

_CASES = SignedKind("case", (FORMAT,))
case_file, case_page, verified_case = _CASES.file, _CASES.page, _CASES.verified
