#!/usr/bin/env bash
# Makes the secrets of docker-compose.yml where they are missing; never replaces one: make_secrets.sh [FOLDER]
# The folder is closed to others (0700); the files in it are readable, because each container's user is another one.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 077
folder=${1:-.ttmark/compose}
mkdir -p "$folder"
chmod 0700 "$folder"

for name in kek grafana_password; do
    [ -s "$folder/$name" ] || openssl rand -hex 32 > "$folder/$name"
done
if [ ! -s "$folder/case.pem" ]; then
    openssl genpkey -algorithm ed25519 -out "$folder/case.pem" # as `ttmark case new-key` makes it
fi
[ -s "$folder/webhook_secret" ] || printf 'whsec_%s\n' "$(openssl rand -base64 32)" > "$folder/webhook_secret"
for name in public_token reader_token c2pa_key; do
    [ -e "$folder/$name" ] || : > "$folder/$name" # empty until an operator puts a token or a key there
done
mkdir -p "$folder/files" # policies and certificates, which the services see as /files
chmod 0755 "$folder/files"
CA_PATH=/run/secrets/redis_ca deploy/redis/provision.sh "$folder/redis" redis
chmod 0755 "$folder/redis"
chmod 0644 "$folder/kek" "$folder/grafana_password" "$folder/case.pem" "$folder/webhook_secret" \
    "$folder/public_token" "$folder/reader_token" "$folder/c2pa_key" "$folder/redis/"*.url "$folder/redis/ca.crt"
