#!/usr/bin/env bash
# What every package holds, in target/packages/stage: the binary without symbols, man pages, completions and licences.
#
# usage: packaging/stage.sh [BINARY]
#
# Builds the binary with the profile `dist`, or takes one that was built before.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/flags.sh

binary=${1:-}
if [ -n "$binary" ]; then
    # What built the binary has built most of what makes its pages.
    profile=release
    unset RUSTFLAGS
else
    cargo build --profile "$profile" --locked --package dbduel
    binary=target/${profile/#dev/debug}/dbduel
fi
xtask() { cargo run --quiet --profile "$profile" --locked --package dbduel-xtask -- "$@"; }
stage=target/packages/stage
rm -rf "$stage"
mkdir -p "$stage/completions"
strip -o "$stage/dbduel" "$binary"
packaging/glibc.sh "$stage/dbduel"
xtask man "$stage/man"
for shell in bash fish zsh; do
    xtask completions "$shell" > "$stage/completions/dbduel.$shell"
done
gzip --best --no-name "$stage"/man/*.1
python3 packaging/third_party.py > "$stage/THIRD-PARTY-LICENSES.txt"
cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$stage/"
mkdir "$stage/experiments" && cp experiments/*.toml "$stage/experiments/"
ls -l "$stage/dbduel"
