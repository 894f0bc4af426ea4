#!/usr/bin/env bash
# Does a duel in short turns say what long runs say? Measures pairs of contenders in three ways and prints a table of the ratios
# (second contender ÷ first, committed transactions per second, 95 % intervals). Its last line counts the pairs whose default interval
# overlaps both others, and those in which it lies on one side of 1 and another interval on the other.
#
#   default   the experiment as it is: a pilot chooses the length of turns
#   slices    the same experiment with fixed slices of 8 s
#   classic   each contender alone for 60 s, first, second, first, second, …, five times each. The server of the other one does not
#             run. Between two runs the server is stopped and the file system synced; each run begins with the start of its server
#             and the same warm-up.
#
# Classic runs start the servers on the data directories and configurations that the default duel left (`dbduel run --keep`), because
# copies of files behave differently, and drive them by `dbduel load` with the parameters of the duel's plan.
#
#   benches/short_and_long.sh                     # all pairs of the list `duels`, half an hour each at most
#   benches/short_and_long.sh stalls              # the list `stalls`: transactions that outlast turns
#   benches/short_and_long.sh sqlite-journal …    # pairs by name
#   benches/short_and_long.sh --list              # all names with their questions
#   benches/short_and_long.sh --table             # the table of the pairs that are done; measures nothing
#
# Pairs are experiments in benches/short_and_long/. Results are in the directory RESULTS, a line in NAME.tsv for each pair (COLUMNS in
# figures.py names its fields) and the records beside it; the same command resumes what was interrupted. Environment variables have
# the lengths and places:
#
#   BUDGET_S=300 SLICE_S=8 SLICES_BUDGET_S=480 CLASSIC_S=60 CLASSIC_WARM_UP_S=20 CLASSIC_TIMES=5
#   RESULTS=short-and-long DBDUEL=dbduel DBDUEL_HOME=…
#
# Start nothing else of dbduel with the same home meanwhile: it ends servers that no dbduel owns, those of classic runs among them.
#
# A budget that is too short for six blocks is replaced by one that has them, so
# `BUDGET_S=20 SLICE_S=1 CLASSIC_S=5 CLASSIC_TIMES=2` is a trial of about two minutes a pair. Loaded data stay in dbduel's home
# (`dbduel datasets prune`).
#
# Exit codes: 0 all pairs are done and default and long overlap, 1 a pair failed, 2 the command line is wrong, 3 a pair does not overlap,
# 130 interrupted.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
pairs=$here/short_and_long
figures=$pairs/figures.py
dbduel=${DBDUEL:-dbduel}
results=${RESULTS:-short-and-long}
home=${DBDUEL_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/dbduel}
for length in "${BUDGET_S:-300}" "${SLICE_S:-8}" "${SLICES_BUDGET_S:-480}" "${CLASSIC_S:-60}" "${CLASSIC_WARM_UP_S:-20}" "${CLASSIC_TIMES:-5}"; do
    case $length in
    0* | *[!0-9]*)
        echo "short_and_long: lengths are whole numbers of seconds, 1 or more; \`$length\` is none" >&2
        exit 2
        ;;
    esac
done
budget_s=${BUDGET_S:-300}
slice_s=${SLICE_S:-8}
slices_budget_s=${SLICES_BUDGET_S:-$((budget_s * 8 / 5))}
classic_s=${CLASSIC_S:-60}
classic_warm_up_s=${CLASSIC_WARM_UP_S:-$((classic_s < 20 ? classic_s : 20))}
classic_times=${CLASSIC_TIMES:-5}

# Longest waits for a server, seconds.
start_limit_s=120
stop_limit_s=120
# As dbduel has it.
open_files_max=65536

fail() {
    echo "short_and_long: $*" >&2
    exit 2
}

names() { # LIST
    local file
    for file in "$pairs/$1"/*.toml; do
        basename "$file" .toml
    done
}

# The experiment of a pair; fails when there is none.
experiment_of() { # NAME
    local list
    for list in duels stalls; do
        if [ -f "$pairs/$list/$1.toml" ]; then
            echo "$pairs/$list/$1.toml"
            return
        fi
    done
    return 1
}

list_pairs() {
    local list name
    for list in duels stalls; do
        echo "$list:"
        for name in $(names "$list"); do
            printf '  %-28s %s\n' "$name" "$(sed -n 's/^question = "\(.*\)"$/\1/p' "$pairs/$list/$name.toml")"
        done
    done
}

# What is running: a process of dbduel, and a server that was started for a classic run.
child=
server=
stop_signal=TERM

is_alive() { # PID
    # A zombie has ended.
    local state
    state=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null || true)
    [ -n "$state" ] && [ "${state#Z}" = "$state" ]
}

# Waits for the end of a process, at most so many seconds.
wait_for_end() { # PID SECONDS
    local tenths
    for ((tenths = 0; tenths < $2 * 10; tenths++)); do
        is_alive "$1" || return 0
        sleep 0.1
    done
    return 1
}

stop_server() {
    [ -n "$server" ] || return 0
    local pid=$server
    server=
    kill -s "$stop_signal" "$pid" 2>/dev/null || true
    if ! wait_for_end "$pid" "$stop_limit_s"; then
        echo "short_and_long: server $pid did not stop within $stop_limit_s s and is killed" >&2
        kill -KILL "$pid" 2>/dev/null || true
    fi
    wait "$pid" 2>/dev/null || true
}

# shellcheck disable=SC2329 # The trap below invokes it.
clean_up() {
    if [ -n "$child" ]; then
        kill -TERM "$child" 2>/dev/null || true
        wait_for_end "$child" "$stop_limit_s" || kill -KILL "$child" 2>/dev/null || true
        child=
    fi
    stop_server
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# Runs dbduel so that a signal ends it too; its exit code is ours. Standard output goes to a file.
drive() { # OUTPUT ARGUMENT…
    local output=$1 code=0
    shift
    "$dbduel" "$@" >"$output" 2>"$output.err" &
    child=$!
    wait "$child" || code=$?
    child=
    if [ "$code" -eq 130 ]; then
        exit 130
    fi
    return "$code"
}

# What went wrong, from the end of what dbduel said.
complain() { # OUTPUT WHAT
    echo "short_and_long: $2 failed:" >&2
    tail -n 5 "$1.err" >&2
}

# Writes an experiment with a budget, seconds, and lines for its schedule.
write_experiment() { # FROM TO BUDGET SCHEDULE
    {
        echo "budget = \"$3 s\""
        cat "$1"
        printf '%b' "$4"
    } >"$2"
}

# Measures a contest. Its record is in the file `$directory/record` when it is done.
contest() { # EXPERIMENT DIRECTORY BUDGET SCHEDULE [OPTION…]
    local experiment=$1 directory=$2 budget=$3 schedule=$4 code=0 record least
    shift 4
    [ ! -f "$directory/record" ] || return 0
    mkdir -p "$directory"
    record=$(find "$directory" -mindepth 2 -maxdepth 2 -name plan.json | sort | tail -n 1)
    if [ -n "$record" ]; then
        # Interrupted.
        set -- run "$(dirname "$record")" "$@"
    else
        find "$(dirname "$experiment")" -maxdepth 1 -name '*.lua' -exec cp {} "$directory/" \;
        write_experiment "$experiment" "$directory/duel.toml" "$budget" "$schedule"
        if ! drive "$directory/plan" run "$directory/duel.toml" --plan; then
            least=$(sed -n 's/.*needs at least [0-9]*: give it \([0-9]*\) s or more.*/\1/p' "$directory/plan.err")
            if [ -z "$least" ]; then
                complain "$directory/plan" "the plan of $experiment"
                return 1
            fi
            # Pilots and drains take what the plan cannot foresee.
            write_experiment "$experiment" "$directory/duel.toml" "$((least * 4 / 3))" "$schedule"
        fi
        set -- run "$directory/duel.toml" --results "$directory" "$@"
    fi
    drive "$directory/output" "$@" || code=$?
    # 3 is undecided, 4 void.
    if [ "$code" -ne 0 ] && [ "$code" -ne 3 ] && [ "$code" -ne 4 ]; then
        complain "$directory/output" "dbduel $*"
        return 1
    fi
    record=$(find "$directory" -mindepth 2 -maxdepth 2 -name report.json | sort | tail -n 1)
    if [ -z "$record" ]; then
        complain "$directory/output" "dbduel $*"
        return 1
    fi
    dirname "$record" >"$directory/record"
}

# The folder with the sandboxes of a record.
sandboxes_of() { # RECORD
    local note
    for note in "$home"/sandboxes/*/record; do
        if [ -f "$note" ] && [ "$(realpath -m "$(cat "$note")")" = "$(realpath "$1")" ]; then
            dirname "$note"
            return
        fi
    done
    return 1
}

# Starts the server of a sandbox as dbduel starts it: same program, configuration, environment and limits.
start_server() { # SANDBOX
    local sandbox=$1 configuration socket tenths hard
    local command=() environment=("PATH=$PATH")
    if [ -n "${TZ:-}" ]; then
        environment+=("TZ=$TZ")
    fi
    mapfile -d '' -t command < <(python3 "$figures" server "$sandbox" "$home")
    if [ "${#command[@]}" -lt 2 ]; then
        echo "short_and_long: the server of $sandbox is not known" >&2
        return 1
    fi
    # The first entry is the library path, for programs without a loader of their own.
    if [ -n "${command[0]}" ]; then
        environment+=("LD_LIBRARY_PATH=${command[0]}")
    fi
    command=("${command[@]:1}")
    if [ -f "$sandbox/dbduel.conf" ]; then
        configuration=$sandbox/dbduel.conf
        socket=$(sed -n "s/^unix_socket_directories = '\(.*\)'$/\1/p" "$configuration")/.s.PGSQL.5432
        command+=("--config-file=$configuration" -D "$sandbox/data")
        # SIGTERM would wait for clients.
        stop_signal=INT
        if [ "$(id -u)" -eq 0 ]; then
            # PostgreSQL refuses to run as root.
            command=(unshare --user --map-user=65534 --map-group=65534 "${command[@]}")
        fi
    else
        configuration=$sandbox/my.cnf
        socket=$(sed -n 's/^socket=//p' "$configuration")
        command+=("--defaults-file=$configuration")
        stop_signal=TERM
    fi
    hard=$(ulimit -H -n)
    (
        cd "$sandbox"
        if [ "$hard" = unlimited ] || [ "$hard" -gt "$open_files_max" ]; then
            ulimit -n "$open_files_max"
        fi
        # A session of its own keeps the terminal's signals from the server.
        exec env -i "${environment[@]}" setsid "${command[@]}" </dev/null >>"$sandbox/error.log" 2>&1
    ) &
    server=$!
    for ((tenths = 0; tenths < start_limit_s * 10; tenths++)); do
        if ! is_alive "$server"; then
            break
        fi
        if [ -S "$socket" ]; then
            # It was stopped in good order, so it recovers nothing.
            sleep 1
            return 0
        fi
        sleep 0.1
    done
    echo "short_and_long: the server of $sandbox did not start; see its error.log" >&2
    tail -n 3 "$sandbox/error.log" >&2 || true
    return 1
}

# One contender alone. Prints its transactions per second.
measure_alone() { # RECORD SANDBOX CONTENDER OUTPUT
    local record=$1 sandbox=$2 contender=$3 output=$4 arguments=() code=0
    if [ ! -f "$sandbox/data/dbduel.sqlite" ]; then
        start_server "$sandbox" || return 1
    fi
    mapfile -d '' -t arguments < <(python3 "$figures" load "$record" "$contender" "$sandbox")
    if [ "${#arguments[@]}" -eq 0 ]; then
        return 1
    fi
    if [ -f "$sandbox/data/dbduel.account" ]; then
        DBDUEL_PASSWORD=$(cat "$sandbox/data/dbduel.account")
        export DBDUEL_PASSWORD
    fi
    drive "$output" load "${arguments[@]}" --duration "$classic_s s" --warm-up "$classic_warm_up_s s" --json || code=$?
    unset DBDUEL_PASSWORD
    stop_server
    # What one server left to the system is not written during the run of the other.
    sync
    if [ "$code" -ne 0 ]; then
        complain "$output" "dbduel load on $sandbox"
        return 1
    fi
}

# Each contender alone, in turns. Writes a line for each run: number, contender, transactions per second.
classic() { # RECORD DIRECTORY
    local record=$1 directory=$2 folder run contender sandbox output rate
    local lines=$directory/classic.tsv
    mkdir -p "$directory"
    touch "$lines"
    for ((run = 1; run <= classic_times; run++)); do
        for contender in 0 1; do
            if grep -q "^$run	$contender	" "$lines"; then
                continue
            fi
            if ! folder=$(sandboxes_of "$record"); then
                echo "short_and_long: the files of $record are gone; remove $(dirname "$directory") to begin again" >&2
                return 1
            fi
            sandbox=$(find "$folder" -mindepth 1 -maxdepth 1 -type d -name "$contender-*")
            output=$directory/$run-$contender.json
            measure_alone "$record" "$sandbox" "$contender" "$output" || return 1
            rate=$(python3 "$figures" rate "$output") || return 1
            printf '%s\t%s\t%s\n' "$run" "$contender" "$rate" >>"$lines"
            echo "  classic $run of $classic_times, contender $contender: $rate transactions/s"
        done
    done
}

# Removes the files that the default duel left.
remove_sandboxes() { # RECORD
    local folder
    folder=$(sandboxes_of "$1") || return 0
    python3 "$figures" sockets "$folder" | while read -r outside; do
        rm -rf -- "${outside:?}"
    done
    rm -rf -- "${folder:?}"
}

measure_pair() { # NAME
    local name=$1 experiment directory=$results/$1
    experiment=$(experiment_of "$name")
    echo "$name: default"
    contest "$experiment" "$directory/default" "$budget_s" "" --keep || return 1
    echo "$name: classic"
    classic "$(cat "$directory/default/record")" "$directory/classic" || return 1
    remove_sandboxes "$(cat "$directory/default/record")"
    echo "$name: slices of $slice_s s"
    contest "$experiment" "$directory/slices" "$slices_budget_s" "\n[schedule]\nslice = \"$slice_s s\"\n" || return 1
    python3 "$figures" line "$name" "$(cat "$directory/default/record")" "$(cat "$directory/slices/record")" \
        "$directory/classic/classic.tsv" >"$results/$name.tsv.new" || return 1
    mv "$results/$name.tsv.new" "$results/$name.tsv"
}

print_table() { # NAME…
    local name slice files=()
    for name in "$@"; do
        if [ -f "$results/$name.tsv" ]; then
            files+=("$results/$name.tsv")
        fi
    done
    # Of the lengths with which these lines were measured.
    read -r _ slice _ 2>/dev/null <"$results/lengths" || slice=$slice_s
    python3 "$figures" table "$slice" "${files[@]}"
}

command -v python3 >/dev/null || fail "python3 is missing"
if [ "$classic_times" -lt 2 ] || [ "$classic_times" -gt 30 ]; then
    fail "CLASSIC_TIMES must be 2 to 30; an interval needs two runs of each contender"
fi

only_table=false
wanted=()
for argument in "$@"; do
    case $argument in
    --list)
        list_pairs
        exit 0
        ;;
    --table) only_table=true ;;
    -h | --help)
        sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    duels | stalls) mapfile -t -O "${#wanted[@]}" wanted < <(names "$argument") ;;
    *)
        if ! experiment_of "$argument" >/dev/null; then
            echo "short_and_long: there is no pair and no list \`$argument\`; there are:" >&2
            list_pairs >&2
            exit 2
        fi
        wanted+=("$argument")
        ;;
    esac
done
if [ "${#wanted[@]}" -eq 0 ] && $only_table; then
    mapfile -t wanted < <(names duels && names stalls)
elif [ "${#wanted[@]}" -eq 0 ]; then
    mapfile -t wanted < <(names duels)
fi
if $only_table; then
    print_table "${wanted[@]}"
    exit
fi

command -v "$dbduel" >/dev/null || fail "\`$dbduel\` is not a program; DBDUEL names it"
mkdir -p "$results"
results=$(realpath "$results")
mkdir -p "$home"
home=$(realpath "$home")
# Lines of one table are measured alike.
lengths="$budget_s $slice_s $slices_budget_s $classic_s $classic_warm_up_s $classic_times"
if [ ! -f "$results/lengths" ]; then
    echo "$lengths" >"$results/lengths"
elif [ "$(cat "$results/lengths")" != "$lengths" ]; then
    fail "the results in $results have other lengths ($(cat "$results/lengths"), not $lengths); set RESULTS to another directory"
fi

failed=0
for name in "${wanted[@]}"; do
    if [ -f "$results/$name.tsv" ]; then
        echo "$name: done"
    elif ! measure_pair "$name"; then
        stop_server
        failed=1
        echo "$name: failed" >&2
    fi
done
echo
agreement=0
print_table "${wanted[@]}" || agreement=$?
exit "$((failed ? 1 : agreement))"
