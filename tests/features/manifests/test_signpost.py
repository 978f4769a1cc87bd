"""A manifest says whom to ask about its text."""

import pytest

from tests.harness.certificates import credential
from ttmark.shared.manifests.signer import ManifestSigner
from ttmark.shared.manifests.wrapper import wrapped
from ttmark.shared.signpost import DOCUMENT_PATH, signposts

A, B = "https://detect.example.org", "https://two.example:8443"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("A text." + wrapped(f"no manifest, but {A}{DOCUMENT_PATH}".encode()), [A]),
        ("A text." + wrapped(b"x" * 50)[:-40], []),
    ],
)
def test_what_is_no_manifest_is_read_as_any_text(text: str, named: list[str]) -> None:
    assert signposts(text) == named


def test_a_signed_manifest_names_it_where_the_signer_is_told_to() -> None:
    ours, text = credential(), "A text."
    mark = ManifestSigner(ours.chain, ours.key, B).wrapper(text, model="m")
    assert signposts(text + mark) == [B]
    assert signposts(text + ManifestSigner(ours.chain, ours.key).wrapper(text, model="m")) == []
