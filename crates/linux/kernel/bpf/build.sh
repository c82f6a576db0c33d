#!/usr/bin/env bash
# Compiles the controllers to the objects that the loader contains, and those of the tests:
# `build.sh [DIRECTORY]`, into their places if none is given. Needs clang, llvm-strip and libbpf's
# headers (Debian: clang llvm libbpf-dev).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
clang=${CLANG:-clang}
strip=${LLVM_STRIP:-llvm-strip}
if ! command -v "$strip" >/dev/null 2>&1; then
    # Debian names it after its version only.
    strip=llvm-strip-$("$clang" -dumpversion | cut -d. -f1)
fi
for source in bpf/*.bpf.c tests/suite/*.bpf.c; do
    object=$(basename "${source%.c}.o")
    into=${1:-$(dirname "$source")/objects}
    # The CPU is one that 6.1 knows, the paths stay out of the object.
    "$clang" -target bpf -mcpu=v2 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -Ibpf \
        -ffile-prefix-map="$PWD"=. -fdebug-compilation-dir=. -c "$source" -o "$into/$object"
    # The kernel reads types from .BTF; the rest of -g is not for it.
    "$strip" --strip-debug "$into/$object"
done
