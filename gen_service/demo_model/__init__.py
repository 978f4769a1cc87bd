"""The small language model that ships with the project, and held-out prose to try it on."""

from pathlib import Path

_HERE = Path(__file__).parent

DEMO_MODEL_PATH = _HERE / "model"
"""A folder for `AutoModelForCausalLM.from_pretrained` and `AutoTokenizer.from_pretrained`."""

PROMPTS_PATH = _HERE / "prompts.jsonl"
"""Beginnings of held-out paragraphs, one `{"prompt": ...}` per line."""

HUMAN_TEXTS_PATH = _HERE / "human.jsonl.gz"
"""Held-out documents, longest first, one `{"source": ..., "text": ...}` per line."""
