"""Keys, access token and model folder for a local start: made when missing, kept when there."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from services.model_folder import model_id, resolve_model
from services.runtime import StartupError
from shared.keys import (
    InvalidToken,
    KeyEncryptionKey,
    KeyExists,
    KeyRing,
    KeyStoreError,
    Scope,
    TokenRegistry,
    open_store,
)
from shared.schemas.profile import Profile
from shared.tokenization import TextTokenizer, TokenizerMissing

TENANT = "local"


@dataclass(frozen=True)
class LocalSetup:
    """Where everything is that both services are started with.

    Attributes:
        model: `demo`, a hub id or a folder, as the generation service takes it.
        model_id: the name that requests use.
        tokenizer_folder: folder with the model's tokenizer.json.
        store_url: the key store.
        kek_file: file with the key-encryption key.
        token_file: file with the access token in plain text, readable by its owner alone.
        key_id: the key that generation uses.
        other_key_id: a second key, to show that detection tells keys apart.
        state: the state folder, also for logs.
    """

    model: str
    model_id: str
    tokenizer_folder: Path
    store_url: str
    kek_file: Path
    token_file: Path
    key_id: str
    other_key_id: str
    state: Path

    @property
    def token(self) -> str:
        """The access token."""
        return self.token_file.read_text().strip()


def provision(model: str, store_url: str | None, state: Path) -> LocalSetup:
    """Makes the state folder complete.

    Raises:
        StartupError: unknown model, no tokenizer, or an unreachable key store.
    """
    folder = resolve_model(model)
    try:
        fingerprint = TextTokenizer.load(folder).fingerprint
    except TokenizerMissing as error:
        raise StartupError(
            f"model {model}: {error}; save its tokenizer there with save_pretrained"
        ) from error
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    setup = LocalSetup(
        model=model,
        model_id=model_id(model),
        tokenizer_folder=folder,
        store_url=store_url or f"sqlite:///{state / 'keys.db'}",
        kek_file=state / "kek",
        token_file=state / "token",
        key_id=f"default-{fingerprint[:8]}",
        other_key_id=f"other-{fingerprint[:8]}",
        state=state,
    )
    if not setup.kek_file.exists():
        write_secret(setup.kek_file, KeyEncryptionKey.generate_text())
    try:
        asyncio.run(_provision_store(setup, fingerprint))
    except (KeyStoreError, ValueError) as error:
        raise StartupError(str(error)) from error
    return setup


async def _provision_store(setup: LocalSetup, fingerprint: str) -> None:
    store = open_store(setup.store_url)
    try:
        await store.ping()
        kek = KeyEncryptionKey.from_text(setup.kek_file.read_text())
        ring, registry = KeyRing(store, kek), TokenRegistry(store, kek)
        profile = Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": fingerprint})
        for key_id in (setup.key_id, setup.other_key_id):
            try:
                await ring.create(key_id, tenant=TENANT, profile=profile)
            except KeyExists:
                await ring.open(key_id)  # says now, not in a service's log, that the KEK does not fit
        try:
            await registry.authenticate(setup.token)
        except (FileNotFoundError, InvalidToken):
            token, _ = await registry.create(
                tenant=TENANT, scopes=frozenset(Scope), expires_at=None, label="ttmark up"
            )
            write_secret(setup.token_file, token)
    finally:
        await store.close()


def write_secret(path: Path, text: str) -> None:
    """Writes a file that its owner alone can read, from its first moment on."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text.rstrip("\n") + "\n")
