"""Cases of the detection service: what a check asked and was answered, signed."""

NEEDS = ("files",)
