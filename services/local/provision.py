"""Keys, access token and model folder for a local start: made when missing, kept when there."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from ttmark.services.model_folder import BY_NAME, model_id, resolve_model
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.startup import StartupError, no_start_after
from ttmark.services.state_folder import remember_tokenizer
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile, profile_fields
from ttmark.shared.signed_files.signed_file import CaseKey
from ttmark.shared.tokenization import TextTokenizer, TokenizerMissing
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.stores.key_store_errors import InvalidToken, KeyExists, KeyStoreError
from ttmark.shared.whole_file import NotWritten, make_folder, write_whole

TENANT = "local"


@dataclass(frozen=True)
class LocalSetup:
    """Where everything is that both services are started with.

    Attributes:
        model: `smollm2`, `demo`, a hub id or a folder, as the generation service takes it.
        other_key_id: a second key, to show that detection tells keys apart.
        state: the state folder, also for logs.
    """

    model: str
    model_id: str
    tokenizer_folder: Path
    store_url: str
    key_id: str
    other_key_id: str
    state: Path

    @property
    def kek_file(self) -> Path:
        return self.state / "kek"

    @property
    def token_file(self) -> Path:
        """The access token in plain text, readable by its owner alone."""
        return self.state / "token"

    @property
    def case_key_file(self) -> Path:
        """The key that the detection service signs cases with."""
        return self.state / "case.pem"

    @property
    def token(self) -> str:
        return self.token_file.read_text().strip()


def provision(model: str, store_url: str | None, state: Path) -> LocalSetup:
    """Makes the state folder complete.

    Raises:
        StartupError: unknown model, no tokenizer, no config.json, or an unreachable key store.
    """
    folder = resolve_model(model, state)
    try:
        tokenizer = TextTokenizer.load(folder)
    except TokenizerMissing as error:
        raise StartupError(
            f"model {model}: {error}; save its tokenizer there with save_pretrained"
        ) from error
    if not (folder / "config.json").is_file():
        raise StartupError(f"model {model}: no config.json in {folder}, so no causal language model")
    fingerprint = tokenizer.fingerprint
    setup = LocalSetup(
        model=model,
        model_id=model_id(model),
        tokenizer_folder=folder,
        store_url=store_url or f"sqlite:///{state / 'keys.db'}",
        key_id=f"default-{fingerprint[:8]}",
        other_key_id=f"other-{fingerprint[:8]}",
        state=state,
    )
    with no_start_after(KeyStoreError, NotWritten):
        make_folder(state, mode=0o700)
        if model not in BY_NAME:
            remember_tokenizer(state, setup.model_id, tokenizer)
        _have_secret(setup.kek_file, KeyEncryptionKey.generate_text, KeyEncryptionKey.from_text)
        _have_secret(setup.case_key_file, lambda: CaseKey.generate().pem(), CaseKey.from_pem)
        asyncio.run(_provision_store(setup, fingerprint))
    return setup


def _have_secret(path: Path, make: Callable[[], str], read: Callable[[str], object]) -> None:
    """Makes the file where it is missing, and reads it.

    Raises:
        StartupError: it holds something else. Nothing here replaces it: it may be one that can be mended.
        NotWritten: it is missing and cannot be made.
    """
    if not path.exists():
        write_whole(path, f"{make().rstrip()}\n".encode(), new=True)
    try:
        read(path.read_text(errors="replace").strip())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StartupError(
            f"{path}: {reason}; remove it, or put back a copy of the one that was there"
        ) from None


async def _provision_store(setup: LocalSetup, fingerprint: str) -> None:
    settings = KeyStoreSettings(
        store_url=SecretStr(setup.store_url),
        store_url_file=None,
        kek=None,
        kek_file=setup.kek_file,
        state=setup.state,
    )
    kek, store = settings.load_kek(), settings.open_store()
    try:
        await store.ping()
        ledger = settings.open_ledger()
        ring, registry = KeyRing(store, kek, ledger=ledger), TokenRegistry(store, kek, ledger=ledger)
        profile = Profile.model_validate(profile_fields(tokenizer_fingerprint=fingerprint))
        for key_id in (setup.key_id, setup.other_key_id):
            try:
                await ring.create(key_id, tenant=TENANT, profile=profile)
            except KeyExists:
                await ring.open(key_id)  # says now, not in a service's log, that the KEK does not fit
        try:
            await registry.authenticate(setup.token)
        except (FileNotFoundError, UnicodeDecodeError, InvalidToken):
            token, _ = await registry.create(
                tenant=TENANT, scopes=frozenset(Scope), expires_at=None, label="ttmark up"
            )
            write_whole(setup.token_file, f"{token}\n".encode())
    finally:
        await store.close()
