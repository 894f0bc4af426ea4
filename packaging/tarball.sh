#!/usr/bin/env bash
# Packs what packaging/stage.sh made into target/packages/dbduel-VERSION-MACHINE-linux-gnu.tar.xz, with its SHA-256 beside it.
set -euo pipefail
cd "$(dirname "$0")/.."
name="dbduel-$(packaging/version.sh)-$(uname -m)-linux-gnu"
cd target/packages
rm -rf "$name" && cp -r stage "$name"
# The same stage gives the same bytes.
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" "$name" \
    | xz -9 --threads=1 > "$name.tar.xz"
rm -rf "$name"
sha256sum "$name.tar.xz" > "$name.tar.xz.sha256"
ls -l "$name.tar.xz"
