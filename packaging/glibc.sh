#!/usr/bin/env bash
# Prints the oldest glibc that a binary runs on, and fails where it is newer than the one that docs/install.md promises.
#
# usage: packaging/glibc.sh BINARY
set -euo pipefail
promised=2.34
needed=$(objdump -T "$1" | grep -o 'GLIBC_[0-9.]*[0-9]' | sed 's/GLIBC_//' | sort -Vu | tail -1)
echo "needs glibc $needed"
if [ "$(printf '%s\n' "$needed" "$promised" | sort -V | tail -1)" != "$promised" ]; then
    objdump -T "$1" | grep "GLIBC_$needed" >&2
    echo "these symbols ask for glibc $needed; docs/install.md promises $promised" >&2
    exit 1
fi
