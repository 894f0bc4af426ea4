#!/usr/bin/env bash
# Prints the version of the workspace.
set -euo pipefail
cd "$(dirname "$0")/.."
sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1
