#!/usr/bin/env bash
# Links the simulator for Windows with Zig and compares a digest with Linux's, in Wine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=x86_64-pc-windows-gnu
place=$PWD/target/wine

skip() {
    echo "skipped: test-windows: $1" >&2
    exit 0
}
command -v wine >/dev/null || skip "wine is not installed"
rustup target add "$target" >/dev/null 2>&1 || skip "rustup cannot get $target"
tools=$PWD/target/tools/zig
test -d "$tools" || scripts/uv pip install --quiet --target "$tools" cargo-zigbuild==0.24.0 \
    ziglang==0.17.1 || skip "Zig cannot be installed"
export PATH=$tools/bin:$PATH PYTHONPATH=$tools WINEPREFIX=$place/prefix WINEDEBUG=-all DISPLAY=

executable=$(cargo-zigbuild test --no-run --message-format=json --target "$target" \
    --package cwnd-sim --test prefetch 2>/dev/null |
    sed -n 's/.*"executable":"\([^"]*\.exe\)".*/\1/p')
test -n "$executable"
mkdir -p "$place"
cp "$executable" "$place/prefetch.exe"
# Wine 8 lacks this library of Windows 10, from which Rust's hash maps draw their seeds.
cat >"$place/prng.c" <<'END'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length)
{
	return SystemFunction036(data, (ULONG)length);
}
END
python3 -m ziglang cc -target x86_64-windows-gnu -shared -O1 "$place/prng.c" -ladvapi32 \
    -o "$place/bcryptprimitives.dll"
wine "$place/prefetch.exe" 2>/dev/null
