"""Settings of the marking policy."""

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import Field, ValidationError

from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import ReadableFile
from ttmark.services.startup import StartupError

if TYPE_CHECKING:
    from ttmark.gen_service.features.policy.marking_policy import MarkingPolicy

_MOST_PROBLEMS = 5


class PolicySettings(Settings):
    policy_file: ReadableFile | None = Field(
        default=None, description="YAML or JSON file with rules on which texts are marked. Left out: all are."
    )

    def load_policy(self) -> "MarkingPolicy":
        """The policy; without a file one that marks everything.

        Raises:
            StartupError: the file cannot be read, or is not a policy; the message says where.
        """
        from ttmark.gen_service.features.policy.marking_policy import (
            MarkingPolicy,  # the settings load without the service
        )

        if self.policy_file is None:
            return MarkingPolicy()
        try:
            return MarkingPolicy.model_validate_json(orjson.dumps(_read_policy(self.policy_file)))
        except ValidationError as error:
            problems = [
                f"{'.'.join(map(str, one['loc'])) or 'the policy'}: {one['msg']}"
                for one in error.errors()[:_MOST_PROBLEMS]
            ]
            raise StartupError(f"TTMARK_POLICY_FILE={self.policy_file}: {'; '.join(problems)}") from error
        except TypeError as error:
            raise StartupError(f"TTMARK_POLICY_FILE={self.policy_file}: {error}") from error


def _read_policy(path: Path) -> Any:
    """What a YAML file says; JSON is YAML.

    Raises:
        StartupError: it cannot be read, or says a thing twice.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a name that comes twice, of which YAML drops the first."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
            names = [self.construct_object(key, deep=True) for key, _ in node.value]
            for name in names:
                if names.count(name) > 1:
                    raise yaml.YAMLError(
                        f"{name!r} stands twice in line {node.start_mark.line + 1} and after"
                    )
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(path.read_text(), Loader)  # noqa: S506 - a safe loader
    except (OSError, UnicodeDecodeError, RecursionError, yaml.YAMLError) as error:
        reason = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise StartupError(f"TTMARK_POLICY_FILE={path} cannot be read: {reason}") from error
