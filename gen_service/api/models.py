"""Models as `/v1/models` shows them."""

from ttmark.gen_service.api.backend import GenerationBackend, ServedModel
from ttmark.gen_service.api.key_selection import usable_keys
from ttmark.shared.schemas.models import Model, ModelProfile


def describe(model_id: str, model: ServedModel, tenant: str, backend: GenerationBackend) -> Model:
    """A model, with the profiles and keys that the tenant has for it."""
    generator = model.generator
    profiles: dict[str, ModelProfile] = {}
    for key in usable_keys(tenant, backend, generator):
        profile = key.profile
        entry = profiles.setdefault(
            profile.profile_id,
            ModelProfile(
                profile=profile.profile_id,
                scheme=profile.scheme,
                block_size=profile.block_size,
                payloads=profile.pool if profile.payloads else None,
                key_ids=[],
            ),
        )
        entry.key_ids.append(key.key_id)
    return Model(
        id=model_id,
        created=model.created,
        context_length=generator.context_length,
        tokenizer_fingerprint=generator.tokenizer.fingerprint,
        chat=model.chat_template is not None,
        sampling=model.sampling,
        profiles=list(profiles.values()),
    )
