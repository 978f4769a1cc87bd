"""Opens the marking policy, where there is one."""

from ttmark.gen_service.api.features import FEATURES, GenerationFeature
from ttmark.gen_service.features.policy.marking_policy import MarkingPolicy, PolicyHook
from ttmark.gen_service.features.policy.settings import PolicySettings
from ttmark.services.startup import StartupError
from ttmark.shared.features import modules_of


def opened(_: object) -> GenerationFeature:
    """The policy.

    Raises:
        StartupError: its file is not usable, or a rule wants manifests, which this service cannot sign.
    """
    policy = PolicySettings().load_policy()
    if policy.demands_manifests and not _signs():
        raise StartupError("a rule of TTMARK_POLICY_FILE needs TTMARK_C2PA_CERT_FILE")
    return GenerationFeature(hooks=() if policy == MarkingPolicy() else (PolicyHook(policy),))


def _signs() -> bool:
    found = (getattr(module, "SigningSettings", None) for module in modules_of("settings", FEATURES))
    return any(kind().c2pa_cert_file is not None for kind in found if kind is not None)
