#!/usr/bin/env bash
# How often do the background threads of a server wake per second of its load? Their loops go by the clock, which runs on while a
# server is frozen. The same server twice in slices of 5 s (as alone), twice in short turns, and eight times in short turns.
#
#   benches/background_work.sh [PRODUCT…]       # mariadb, mysql, postgresql; all of them without arguments, some eight minutes each
#
# Environment: BUDGET_S=180 (of two contenders; eight have twice as much) RESULTS=background-work DBDUEL=dbduel DBDUEL_HOME=…
# The records stay in RESULTS; a contest that is there already is not run again.
set -euo pipefail

dbduel=${DBDUEL:-dbduel}
results=${RESULTS:-background-work}
budget_s=${BUDGET_S:-180}
figures=$(cd "$(dirname "$0")" && pwd)/background_work.py

case $budget_s in
0* | *[!0-9]*)
    echo "background_work: BUDGET_S is a whole number of seconds, 1 or more; \`$budget_s\` is none" >&2
    exit 2
    ;;
esac

# The server, and settings with which commits do not wait for the disk, so that its background threads write.
server_of() { # PRODUCT
    case $1 in
    mariadb) echo 'server = "mariadb-10.11"
settings = { innodb_buffer_pool_size = "64M", innodb_flush_log_at_trx_commit = 2 }' ;;
    mysql) echo 'server = "mysql-8.0.33"
settings = { innodb_buffer_pool_size = "64M", innodb_flush_log_at_trx_commit = 2, skip_log_bin = "ON" }' ;;
    postgresql) echo 'server = "postgresql-17-debian"
settings = { shared_buffers = "64MB", synchronous_commit = "off" }' ;;
    *)
        echo "background_work: \`$1\` is none of mariadb, mysql, postgresql" >&2
        exit 2
        ;;
    esac
}

experiment() { # PRODUCT CONTENDERS SLICE
    local number seconds=$((budget_s * ($2 > 2 ? 2 : 1)))
    echo "question = \"How often do background threads of $1 wake, with $2 contenders?\""
    echo "budget = \"$seconds s\""
    # Equal servers are then shown to be equal soon.
    echo 'horizon = "25 %"'
    echo '[contenders.one]'
    server_of "$1"
    for ((number = 2; number <= $2; number++)); do
        echo "[contenders.copy-$number]"
        echo 'like = "one"'
    done
    echo '[workload]
name = "oltp-update-non-index"
table_size = 20_000
[load]
clients = 4
[schedule]
warm_up = "8 s"'
    if [ -n "$3" ]; then
        echo "slice = \"$3\""
    fi
}

contest() { # PRODUCT NAME CONTENDERS SLICE
    local folder=$results/$1-$2
    if compgen -G "$folder/*/report.json" >/dev/null; then
        return
    fi
    mkdir -p "$folder"
    experiment "$1" "$3" "$4" >"$folder/duel.toml"
    echo "$1: $2" >&2
    # An undecided duel, which two equal servers should have, is exit code 3 or 0.
    "$dbduel" run "$folder/duel.toml" --results "$folder" >"$folder/output" 2>&1 || [ $? -eq 3 ]
}

products=("$@")
if [ ${#products[@]} -eq 0 ]; then
    products=(mariadb mysql postgresql)
fi
for product in "${products[@]}"; do
    server_of "$product" >/dev/null
done
for product in "${products[@]}"; do
    contest "$product" alone 2 "5 s"
    contest "$product" two 2 ""
    contest "$product" eight 8 ""
done
python3 "$figures" "$results" "${products[@]}"
