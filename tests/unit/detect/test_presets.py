"""Texts of a key are found beside keys with other profiles, older and newer."""

import pytest

from ttmark.shared.schemas.profile import PRESETS, Purpose
from ttmark.shared.watermark import Watermark, corrected, detect_aligned
from ttmark.shared.watermark.null_tables import load_null_table

KEYS = ("before", *Purpose)


@pytest.mark.parametrize("mode", ["direct", "aligned", "localized"])
@pytest.mark.parametrize("name", KEYS)
async def test_texts_of_the_old_profile_and_of_each_new_one_are_found_side_by_side(service, mode, name):
    text, key = service.marked(f"p-{name}", 300), service.keys[f"p-{name}"]
    result = await service.one(mode, text, "presets")
    assert (result.verdict, result.key and result.key.key_id) == ("watermarked", f"p-{name}")
    if mode == "aligned":
        tokens = service.tokenizer.encode(text)
        alone = detect_aligned(key.profile.watermark(), key.primary.prf_key, tokens).log10_p
        # Each bears its own pool, and the numbers of versions and readings; not the pools of others.
        readings = result.hypotheses // sum(service.keys[f"p-{each}"].profile.pool for each in KEYS)
        assert result.log10_p == pytest.approx(corrected(alone, key.profile.pool * len(KEYS) * readings))


def test_every_preset_has_a_null_table() -> None:
    for preset in PRESETS.values():
        watermark = Watermark(preset["scheme"], 2, preset["context_width"], preset.get("parameters"))
        assert load_null_table(watermark.null.name, 2) is not None
