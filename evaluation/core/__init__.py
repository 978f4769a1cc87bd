"""Experiments on the watermark core: what it promises, measured. `python -m evaluation.core <name>`."""
