#!/usr/bin/env bash
# Makes .venv and installs the project into it: `bootstrap.sh run` what the services and commands need, `bootstrap.sh dev` the tests too.
# TTMARK_TORCH_INDEX is the pip index that torch comes from, where it is not the default one.
set -euo pipefail
cd "$(dirname "$0")/.."
tier=${1:?usage: bootstrap.sh run|dev}
python=${PYTHON:-python3}
venv=.venv
log=$venv/install-$tier.log

fail() { echo "ttmark: $*" >&2; exit 1; }

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
    || fail "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"

# A torch that the machine brings (a CUDA build, say) is used as it is: a second one would cost gigabytes.
constraints=constraints.txt
if [ ! -x $venv/bin/python ]; then
    flags=
    if "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
        flags=--system-site-packages
    fi
    # shellcheck disable=SC2086
    "$python" -m venv $flags $venv || fail "could not make $venv (on Debian and Ubuntu: apt install python3-venv)"
fi
echo "ttmark: installing into $venv (first time: a few minutes) ..."
if $venv/bin/python -c 'import torch' 2>/dev/null; then
    constraints=$venv/constraints.txt
    grep -v '^torch==' constraints.txt > $constraints
else
    # First and by its exact version: a looser requirement takes a build with gigabytes of CUDA packages.
    $venv/bin/python -m pip install --disable-pip-version-check -q -c constraints.txt \
        ${TTMARK_TORCH_INDEX:+--index-url "$TTMARK_TORCH_INDEX"} torch > "$log" 2>&1 \
        || { tail -n 20 "$log" >&2; fail "installing torch failed; the whole log is in $log"; }
fi
extras=$([ "$tier" = dev ] && echo dev || echo gen,bulk,eval)
$venv/bin/python -m pip install --disable-pip-version-check -q -c $constraints -e ".[$extras]" >> "$log" 2>&1 \
    || { tail -n 20 "$log" >&2; fail "installing the project failed; the whole log is in $log"; }
touch $venv/.run
[ "$tier" = run ] || touch $venv/.dev
