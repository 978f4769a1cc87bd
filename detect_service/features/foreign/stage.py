"""Keys of other systems are tried beside our own."""

from ttmark.detect_service.features.foreign.foreign_findings import foreign_cost, with_foreign
from ttmark.detect_service.key_selection import OtherKeys
from ttmark.detect_service.stage import VerdictStage

STAGE = VerdictStage("foreign", other_keys=OtherKeys(foreign_cost, with_foreign))
