#!/usr/bin/env bash
# Makes a Python wheel that carries the binary, in target/packages, with maturin. Its man pages, completions and licences are
# those of packaging/stage.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/flags.sh
stage=target/packages/stage
share=target/packages/wheel-data/data/share
rm -rf "$share"
mkdir -p "$share/man" "$share/doc/dbduel" "$share/bash-completion/completions" "$share/fish/vendor_completions.d" \
    "$share/zsh/site-functions"
cp -r "$stage/man" "$share/man/man1"
cp "$stage/completions/dbduel.bash" "$share/bash-completion/completions/dbduel"
cp "$stage/completions/dbduel.fish" "$share/fish/vendor_completions.d/dbduel.fish"
cp "$stage/completions/dbduel.zsh" "$share/zsh/site-functions/_dbduel"
cp "$stage/THIRD-PARTY-LICENSES.txt" "$share/doc/dbduel/"
out=$PWD/target/packages
cd packaging/wheel
maturin build --profile "$profile" --locked --out "$out"
ls -l "$out"/*.whl
