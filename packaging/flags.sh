# shellcheck shell=bash disable=SC2034
# Sourced by what compiles packages, so that all of it is compiled once. Paths of the machine that builds do not get into the
# binary.
export RUSTFLAGS="${RUSTFLAGS---remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$PWD=/dbduel}"
profile=${DBDUEL_PROFILE:-dist}
