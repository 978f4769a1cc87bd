"""What `import ttmark` gives: these names, each typed and documented, and no other."""

import subprocess
import sys

import pytest

import ttmark

CORE = ["AsyncClient", "Client", "Watermark", "detect_aligned", "detect_direct", "detect_localized"]
LIBRARY = ["Finding", "Key", "Model", "SingleToken", "detect", "load", "tandem"]
NAMES = sorted(CORE + LIBRARY)


def test_the_public_names_are_these_and_no_other() -> None:
    assert sorted(ttmark.__all__) == NAMES
    assert dir(ttmark) == NAMES


def test_a_public_name_is_documented_and_what_the_house_calls_so() -> None:
    homes = ("ttmark.shared.client.", "ttmark.shared.watermark.")
    assert all(getattr(ttmark, name).__module__.startswith(homes) for name in CORE)
    assert all(getattr(ttmark, name).__module__.startswith("ttmark.library.") for name in LIBRARY)
    assert all(getattr(ttmark, name).__doc__ for name in NAMES)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'ttmark' has no attribute 'mark'"):
        ttmark.mark  # noqa: B018


def test_all_errors_of_a_client_are_of_one_kind() -> None:
    for kind in (ttmark.Client, ttmark.AsyncClient):
        for error in (kind.Refused, kind.Unreachable, kind.UnexpectedAnswer):
            assert issubclass(error, kind.Error)
    assert ttmark.Client.Error is ttmark.AsyncClient.Error


def test_importing_it_loads_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import ttmark; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert [name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names] == ["ttmark"]


@pytest.mark.long
def test_a_key_is_made_and_a_text_examined_without_torch_and_transformers() -> None:
    code = (
        "import sys, time; start = time.perf_counter(); import ttmark; took = time.perf_counter() - start\n"
        "key = ttmark.Key.new()\n"
        "assert ttmark.detect('A text by a person, short.', key, model='demo').verdict == 'too_short'\n"
        "print(took < 0.3, *{'torch', 'transformers'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["True"]


def test_a_client_loads_neither_numpy_nor_a_server() -> None:
    code = "import sys, ttmark; ttmark.Client; print(*{'numpy', 'torch', 'fastapi'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == []
