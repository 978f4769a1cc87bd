#!/usr/bin/env bash
# pydantic 2.14.3: where a field's type has a bound (Annotated[int, Field(ge=0)]) and its default has a tighter one of the same kind
# (= Field(default=5, ge=1)), the type's bound alone holds. Seen: 0 is taken, the JSON schema says minimum 0, and nothing is said when
# the class is made. `model_fields[...].metadata` lists both, the default's first. A bound of another kind (gt beside ge) does hold.
# Fails if the tighter bound holds, or if the class is refused.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" -q install "pydantic==2.14.3"
"$dir/venv/bin/python" - <<'PY'
from typing import Annotated
from pydantic import BaseModel, Field, ValidationError

Amount = Annotated[int, Field(ge=0)]

class Limits(BaseModel):
    same: Amount = Field(default=5, ge=1)
    other: Amount = Field(default=5, gt=0)

print("bounds kept:", Limits.model_fields["same"].metadata, Limits.model_json_schema()["properties"]["same"])
assert Limits(same=0).same == 0, "CHANGED: the tighter bound holds"
print("same=0 is taken")
try:
    Limits(other=0)
    raise SystemExit("CHANGED: gt is lost, too")
except ValidationError as error:
    print("other=0:", error.errors()[0]["msg"])
PY
