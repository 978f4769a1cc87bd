"""Whether the keys that requests use by default are there: a service without them must not get ready."""

import structlog

from ttmark.gen_service.api.backend import GenerationBackend
from ttmark.shared.keys.unlocked import ForeignKey

_LIST = "`ttmark keys list` shows those that there are"


class DefaultKeys:
    """Looks until each key is there once. What happens to a key afterwards is its tenant's business: it must
    not take the service from the others."""

    def __init__(self, backend: GenerationBackend) -> None:
        self._backend = backend
        self._missing = list(backend.default_keys)
        self._said: str | None = None

    def problem(self) -> str | None:
        """What is wrong with a key, in one line that is logged once; None where nothing is."""
        if not self._backend.keys.ready:
            return "the keys are not read yet" if self._missing else None
        self._missing = [key_id for key_id in self._missing if self._problem_of(key_id)]
        problem = self._problem_of(self._missing[0]) if self._missing else None
        if problem not in (None, self._said):
            structlog.get_logger("ttmark.keys").error("default_key_not_usable", reason=problem)
        self._said = problem
        return problem

    def _problem_of(self, key_id: str) -> str | None:
        key = self._backend.keys.get(key_id)
        if key is None:
            return f"TTMARK_DEFAULT_KEY: there is no key {key_id}; {_LIST}, `ttmark keys create` makes one"
        if isinstance(key, ForeignKey):
            return f"TTMARK_DEFAULT_KEY: the key {key_id} is another system's, and marks no text; {_LIST}"
        if key.primary is None:
            return f"TTMARK_DEFAULT_KEY: the key {key_id} has no version in use; {_LIST}"
        models = self._backend.models.items()
        fingerprint = key.profile.tokenizer_fingerprint
        if all(model.generator.tokenizer.fingerprint != fingerprint for _, model in models):
            names = ", ".join(name for name, _ in models)
            return (
                f"TTMARK_DEFAULT_KEY: the key {key_id} is for another tokenizer than that of {names}; {_LIST}"
            )
        return None
