"""Pictures of a page, as a screen or a scanner makes them."""

import io
import shutil

import pytest
from PIL import Image, ImageDraw, ImageFont

PARAGRAPH = (
    "The ferry was late again this morning, and nobody at the gate could say why it came at noon with bread, "
    "two goats and a piano for the bakery in the upper village."
)
ITEMS = ("Bread", "two loaves, since nobody bakes on the island before noon"), ("Water", "for both days")
TEXT = f"{PARAGRAPH}\n\n" + "\n".join(
    f"{number}. **{name}:** {said}." for number, (name, said) in enumerate(ITEMS, 1)
)
"""What the page says, as a model would have written it."""


def page(*, dark: bool = False, scale: int = 1) -> Image.Image:
    """The page; its type is 16 pixels high times `scale`."""
    ink, paper = (235, 30) if dark else (20, 255)
    image = Image.new("L", (760 * scale, 260 * scale), paper)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(16 * scale)
    top, line = 20 * scale, ""
    for word in [*PARAGRAPH.split(), ""]:
        if word and font.getlength(f"{line} {word}") < 660 * scale:
            line = f"{line} {word}".strip()
        else:
            draw.text((40 * scale, top), line, ink, font)
            top, line = top + 24 * scale, word
    for number, (name, said) in enumerate(ITEMS, 1):
        top += 24 * scale * (number == 1)
        draw.text((60 * scale, top), f"{number}.", ink, font)
        draw.text((84 * scale, top), f"{name}:", ink, font, stroke_width=0.5 * scale)
        draw.text((92 * scale + font.getlength(f"{name}:"), top), f"{said}.", ink, font)
        top += 24 * scale
    return image


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    """The picture as a file of a kind that Pillow names: PNG, JPEG, WEBP, TIFF, PDF."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


needs_tesseract = pytest.mark.skipif(
    shutil.which("tesseract") is None, reason="tesseract-ocr is not installed: deploy/system_packages.sh"
)
