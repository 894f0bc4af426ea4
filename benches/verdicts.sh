#!/bin/sh
# How many verdicts of dbduel are right on this machine? Conducts duels with a known answer on a real MariaDB:
# first of a server with itself, then with the second server stopped for a tenth of its slices, and prints
# for each series how many verdicts were right, wrong and undecided, and how many intervals held the truth,
# every share with its own interval, and how steady throughput and costs were from block to block.
#
#   benches/verdicts.sh [DUELS] [BUDGET] [DIRECTORY]
#   DBDUEL_WORKLOAD=oltp-read-write benches/verdicts.sh     # one that writes, for bytes per transaction
#
# 40 duels of at most 45 s each by default, which is about three quarters of an hour for both series. Duels that
# are decided early take less. The exit code is that of the first
# series that says more false things than its confidence allows (4), or 0.
set -eu

duels=${1:-40}
budget=${2:-45 s}
results=${3:-verdicts}
server=${DBDUEL_SERVER:-mariadb-10.11}
workload=${DBDUEL_WORKLOAD:-oltp-point-select}
dbduel=${DBDUEL:-dbduel}

code=0
for injected in "" "10 %"; do
    set -- selftest --server "$server" --workload "$workload" --duels "$duels" --budget "$budget" --results "$results"
    if [ -n "$injected" ]; then
        set -- "$@" --inject "$injected"
    fi
    echo "$dbduel $*"
    date
    "$dbduel" "$@" || { series=$?; [ "$code" -ne 0 ] || code=$series; }
    [ "$code" -ne 130 ] || exit 130
done
date
exit "$code"
