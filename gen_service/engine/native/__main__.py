"""`python -m ttmark.gen_service.engine.native`: compiles what is in C, for an image without a compiler."""

from ttmark.gen_service.decoding import largest
from ttmark.gen_service.engine.native import SOURCE

for source in (SOURCE, largest.SOURCE):
    for path in source.compile_all():
        print(path.name)
