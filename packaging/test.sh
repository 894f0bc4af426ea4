#!/usr/bin/env bash
# Installs a package of target/packages where nothing of this project is, and uses it.
#
# usage: packaging/test.sh tarball|wheel|deb
#
# The tarball is unpacked into an empty folder, the wheel installed into a fresh virtual environment, the Debian package into a
# new Debian in a chroot (debootstrap; needs root), which is kept in target/packages for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$PWD/target/packages
version=$(packaging/version.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What a user would try first, with a command that runs dbduel.
use() {
    "$@" --version | grep -F "$version"
    "$@" workloads | grep -q '^oltp-read-write'
    "$@" servers list > "$work/servers"
    grep -q '^  mariadb-10.11' "$work/servers"
}

case "$1" in
tarball)
    (cd "$packages" && sha256sum --check "dbduel-$version-$(uname -m)-linux-gnu.tar.xz.sha256")
    tar -xJf "$packages/dbduel-$version-$(uname -m)-linux-gnu.tar.xz" -C "$work"
    cd "$work"/dbduel-*
    use env -i HOME="$work" PATH=/usr/bin:/bin ./dbduel
    zcat man/dbduel-run.1.gz | grep -q '^.SH OPTIONS'
    env -i HOME="$work" PATH=/usr/bin:/bin ./dbduel run --plan --json experiments/same-server-twice.toml > plan
    grep -q contenders plan
    test -s THIRD-PARTY-LICENSES.txt
    ;;
wheel)
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --no-index "$packages"/dbduel-"$version"-*.whl
    use env -i HOME="$work" PATH=/usr/bin:/bin "$work/venv/bin/dbduel"
    test -s "$work/venv/share/man/man1/dbduel.1.gz"
    ;;
deb)
    root=$packages/debian
    if [ ! -x "$root/usr/bin/apt-get" ]; then
        rm -rf "$root"
        debootstrap --variant=minbase stable "$root" > "$packages/debootstrap.log"
    fi
    cp "$packages"/dbduel_"$version"-1_*.deb "$root/tmp/dbduel.deb"
    inside() { chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
    mount --bind /proc "$root/proc"
    trap 'umount "$root/proc"; rm -rf "$work"' EXIT
    inside apt-get install -q -y --no-install-recommends --reinstall /tmp/dbduel.deb
    use inside dbduel
    inside zcat /usr/share/man/man1/dbduel-run.1.gz | grep -q '^.SH OPTIONS'
    inside test -s /usr/share/bash-completion/completions/dbduel
    inside test -s /usr/share/doc/dbduel/copyright
    inside apt-get purge -q -y dbduel
    inside test ! -e /usr/bin/dbduel
    ;;
*)
    echo "usage: packaging/test.sh tarball|wheel|deb" >&2
    exit 2
    ;;
esac
echo "the $1 works"
