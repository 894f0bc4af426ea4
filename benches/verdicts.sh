#!/bin/sh
# How many verdicts of dbduel are right on this machine, and how soon do they come? Conducts duels with a known answer on a real
# MariaDB: a server with itself, and with the second server stopped for a twentieth, a tenth, a fifth and a half of its slices
# (the last is a factor of two). Prints for each series how many verdicts were right, wrong and undecided, how many
# intervals held the truth, every share with its own interval, and the median load until a verdict.
#
#   benches/verdicts.sh [DUELS] [BUDGET] [DIRECTORY]
#   DBDUEL_WORKLOAD=oltp-update-non-index benches/verdicts.sh   # one that writes
#   DBDUEL_INJECTED="10 %" benches/verdicts.sh                  # one series; "0" is the server with itself
#   DBDUEL_SLICE="2 s" benches/verdicts.sh                      # slices of one length in place of a pilot's turns
#
# 20 duels of at most 90 s each by default. Duels that are decided early take less: about 40 s each, with the start of the
# servers. The exit code is that of the first series that says more false things than its confidence allows (4), or 0.
set -eu

duels=${1:-20}
budget=${2:-90 s}
results=${3:-verdicts}
server=${DBDUEL_SERVER:-mariadb-10.11}
workload=${DBDUEL_WORKLOAD:-oltp-point-select}
dbduel=${DBDUEL:-dbduel}

code=0
IFS=,
for injected in ${DBDUEL_INJECTED:-0,5 %,10 %,20 %,50 %}; do
    set -- selftest --server "$server" --workload "$workload" --duels "$duels" --budget "$budget" --horizon "2 %" \
        --results "$results"
    if [ "$injected" != 0 ]; then
        set -- "$@" --inject "$injected"
    fi
    if [ -n "${DBDUEL_SLICE:-}" ]; then
        set -- "$@" --slice "$DBDUEL_SLICE"
    fi
    echo "$dbduel" "$@"
    date
    "$dbduel" "$@" || { series=$?; [ "$code" -ne 0 ] || code=$series; }
    [ "$code" -ne 130 ] || exit 130
done
date
exit "$code"
