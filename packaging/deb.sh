#!/usr/bin/env bash
# Packs what packaging/stage.sh made into a Debian package in target/packages, with cargo-deb; what goes where is in
# crates/dbduel/Cargo.toml.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo deb --no-build --no-strip --package dbduel --output target/packages/
ls -l target/packages/*.deb
