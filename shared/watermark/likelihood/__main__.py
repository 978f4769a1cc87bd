"""`python -m ttmark.shared.watermark.likelihood`: compiles the kernels, for an image without a compiler."""

from ttmark.shared.watermark.likelihood.forward_backward import SOURCE

for path in SOURCE.compile_all():
    print(path.name)
