"""`python -m ttmark.gen_service.engine.native`: compiles the kernels, for an image without a compiler."""

from ttmark.gen_service.engine.native.library import compile_all

for path in compile_all():
    print(path.name)
