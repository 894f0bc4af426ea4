#!/usr/bin/env bash
# Makes every package and installs each where nothing else of this project is: in folders of their own, a fresh virtual
# environment, a new Debian. Installs the tools that it needs when it may.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" = 0 ] && ! command -v debootstrap >/dev/null; then
    apt-get update -q && apt-get install -y -q --no-install-recommends debootstrap python3-venv
fi
cargo deb --version >/dev/null 2>&1 || cargo install --locked --debug cargo-deb
tools=$PWD/target/packages/tools
if ! command -v maturin >/dev/null; then
    [ -x "$tools/bin/maturin" ] || { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet 'maturin>=1.7,<2'; }
    PATH=$PATH:$tools/bin
fi

# Builds every crate from what was packed of it and of the others, as a registry would serve them.
cargo package --workspace --locked --allow-dirty
packaging/stage.sh
packaging/tarball.sh
packaging/deb.sh
packaging/wheel.sh
packaging/test.sh tarball
packaging/test.sh wheel
packaging/test.sh deb
