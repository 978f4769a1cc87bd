#!/usr/bin/env bash
# Makes what a Redis key store needs, once: provision.sh FOLDER [HOST]
#   FOLDER/server/   users.acl, ca.crt, server.crt, server.key   mounted into the Redis container
#   FOLDER/*.url     operator.url, gen.url, detect.url           TTMARK_STORE_URL_FILE of each role
#   FOLDER/ca.crt    what clients check the server by            FOLDER/ca.key signs; keep it elsewhere
# The URLs name the certificate as CA_PATH (default: FOLDER/ca.crt), as clients will see it.
set -euo pipefail
umask 077
folder=${1:?usage: provision.sh FOLDER [HOST]}
host=${2:-redis}
here=$(cd "$(dirname "$0")" && pwd)
port=${PORT:-6379}
if [ -e "$folder/server/users.acl" ]; then
    # Folders of before: without the right to write, this user lost each transaction at a restart of Redis.
    grep -qx 'user default off sanitize-payload resetchannels -@all' "$folder/server/users.acl" \
        && sed -i "1s/.*/$(head -n 1 "$here/users.acl.template")/" "$folder/server/users.acl"
    exit 0
fi
mkdir -p "$folder/server"
folder=$(cd "$folder" && pwd)
ca_path=${CA_PATH:-$folder/ca.crt}

quietly() {
    local output
    output=$("$@" 2>&1) || { echo "$output" >&2; exit 1; }
}

cp "$here/users.acl.template" "$folder/users.acl.part"
for role in operator gen detect; do
    password=$(openssl rand -hex 32)
    digest=$(printf %s "$password" | openssl dgst -sha256 -r | cut -d' ' -f1)
    sed -i "s/#${role^^} /#$digest /" "$folder/users.acl.part"
    printf 'rediss://%s:%s@%s:%s/0?ssl_ca_certs=%s&durability=aof\n' \
        "$role" "$password" "$host" "$port" "$ca_path" > "$folder/$role.url"
done

quietly openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
    -subj "/CN=ttmark key store CA" -keyout "$folder/ca.key" -out "$folder/ca.crt"
quietly openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
    -subj "/CN=$host" -keyout "$folder/server/server.key" -out "$folder/server.csr"
case $host in *[!0-9.]*) name="DNS:$host" ;; *) name="IP:$host" ;; esac
printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\n' "$name" > "$folder/server.ext"
quietly openssl x509 -req -in "$folder/server.csr" -CA "$folder/ca.crt" -CAkey "$folder/ca.key" -days 825 \
    -extfile "$folder/server.ext" -out "$folder/server/server.crt"
rm -f "$folder/server.csr" "$folder/server.ext" "$folder/ca.srl"
cp "$folder/ca.crt" "$folder/server/ca.crt"
mv "$folder/users.acl.part" "$folder/server/users.acl"
# The container's user is another one; FOLDER itself, mode 0700, is what keeps others out on this machine.
chmod 0755 "$folder/server"
chmod 0644 "$folder/server/"*
