#!/usr/bin/env bash
# Compiles the controllers to the objects that the loader holds: `build.sh [DIRECTORY]`, into objects/ if none is given.
# Needs clang and libbpf's headers (Debian: clang llvm libbpf-dev).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
into=${1:-objects}
clang=${CLANG:-clang}
strip=${LLVM_STRIP:-llvm-strip}
if ! command -v "$strip" >/dev/null 2>&1; then
    # Debian names it after its version only.
    strip=llvm-strip-$("$clang" -dumpversion | cut -d. -f1)
fi
for source in *.bpf.c; do
    object=$into/${source%.c}.o
    # The CPU is the oldest that libbpf assumes, so that 6.1 takes what comes out; paths stay out of the object.
    "$clang" -target bpf -mcpu=v2 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter \
        -ffile-prefix-map="$PWD"=. -fdebug-compilation-dir=. -c "$source" -o "$object"
    # The kernel reads types from .BTF; the rest of -g is not for it.
    "$strip" --strip-debug "$object"
done
