"""The Triton kernel for tree rows: what it computes, and that it compiles for GPUs that are not here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

triton = pytest.importorskip("triton", reason="Triton has no build for this machine")


def test_the_kernel_computes_the_attention_of_tree_rows() -> None:
    """In a process of its own: Triton decides at its import whether kernels are interpreted."""
    checks = Path(__file__).with_name("interpreted_tree_kernel.py")
    # Without the plugins and settings of the other tests, which take longer to import than these to run.
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--noconftest",
    ]
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, "-W", "error", checks], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "7 passed" in done.stdout


@pytest.mark.parametrize(
    ("capability", "element", "size", "dim", "with_sinks"),
    [(90, "bf16", 2, 128, False), (90, "bf16", 2, 64, True), (80, "fp32", 4, 256, False)],
)
def test_the_kernel_compiles_for_gpus_and_fits_their_shared_memory(
    monkeypatch: pytest.MonkeyPatch, capability: int, element: str, size: int, dim: int, with_sinks: bool
) -> None:
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # what later versions warn of leaving unset
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from ttmark.gen_service.engine.tree_kernel import _tree_kernel as kernel
    from ttmark.gen_service.engine.tree_kernel import launch_sizes

    sizes = launch_sizes(heads=8, kv_heads=2, dim=dim, depth=2, element_size=size)
    sizes["SINKS"] = with_sinks
    types = {"tiles": "*i32", "own": "*i32", "sinks": "*fp32", "scale": "fp32"}
    types |= dict.fromkeys(sizes, "constexpr")
    signature = {
        name: types.get(name, "i32" if name.endswith("stride") else f"*{element}")
        for name in kernel.arg_names
    }
    constants = {(kernel.arg_names.index(name),): value for name, value in sizes.items()}
    compiled = triton.compile(
        ASTSource(kernel, signature, constants), target=GPUTarget("cuda", capability, 32)
    )
    assert compiled.asm["cubin"]
    assert compiled.metadata.shared <= 99 * 1024  # of the smallest GPU that has these instructions
