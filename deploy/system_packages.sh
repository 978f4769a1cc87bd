#!/usr/bin/env bash
# Installs the named Debian packages where their command is missing: system_packages.sh redis-server [PACKAGE:COMMAND ...]
set -euo pipefail
missing=()
for package in "$@"; do
    command -v "${package#*:}" >/dev/null || missing+=("${package%:*}")
done
[ ${#missing[@]} -eq 0 ] && exit 0
command -v apt-get >/dev/null || { echo "ttmark: the tests need ${missing[*]}; install them with your package manager" >&2; exit 1; }
sudo=
[ "$(id -u)" -eq 0 ] || sudo=sudo
echo "ttmark: installing ${missing[*]} from the system's packages ..."
$sudo apt-get update -qq
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
