"""`python -m ttmark.gen_service.engine.native`: compiles the kernels, for an image without a compiler."""

from ttmark.gen_service.engine.native import SOURCE

for path in SOURCE.compile_all():
    print(path.name)
