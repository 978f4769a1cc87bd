"""`python -m ttmark.gen_service.engine.native`: compiles what is in C, for an image without a compiler."""

from ttmark.gen_service.decoding import largest_logits
from ttmark.gen_service.engine.native import SOURCE

for source in (SOURCE, largest_logits.SOURCE):
    for path in source.compile_all():
        print(path.name)
