#!/usr/bin/env bash
# Installs ns-3 and ns-2 from the distribution, for `make bench-peers`.
set -euo pipefail

missing=()
[[ -f /usr/include/ns3/core-module.h ]] || missing+=(libns3-dev)
command -v ns >/dev/null || missing+=(ns2)
command -v c++ >/dev/null || missing+=(g++)
((${#missing[@]})) || exit 0
command -v apt-get >/dev/null || {
    echo "error: ns-3 and ns-2 are installed with apt-get (Debian, Ubuntu), which is missing" >&2
    exit 3
}
as_root=()
((EUID == 0)) || as_root=(sudo)
"${as_root[@]}" apt-get update
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}"
