"""`ttmark conformance`: what a deployment keeps of its promises, measured and signed."""

NEEDS = ("bulk", "cases", "files")
