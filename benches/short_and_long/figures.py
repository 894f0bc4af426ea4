"""What benches/short_and_long.sh reads from records and outputs of dbduel, and the table that it prints."""

import json
import math
import pathlib
import statistics
import sys

# 97.5 % quantiles of Student's t for 1 to 29 degrees of freedom.
T_QUANTILES = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045,
]

# Exit code of a table in which short and long turns do not agree.
DISAGREE = 3

COLUMNS = [
    "pair", "workload", "clients",
    "default", "default_low", "default_high", "default_verdict", "turn_s",
    "slices", "slices_low", "slices_high", "slices_verdict",
    "classic", "classic_low", "classic_high", "first_per_s", "second_per_s",
]


def read(path):
    return json.loads(pathlib.Path(path).read_text())


def print_arguments(arguments):
    """Arguments that may contain anything, for `mapfile -d ''`."""
    sys.stdout.write("".join(f"{argument}\0" for argument in arguments))


def server(sandbox, home):
    """The library path and the command of the server that a sandbox was made for."""
    folder = pathlib.Path(home) / "servers" / read(f"{sandbox}/owner.json")["build"]
    build = read(folder / "build.json")
    library_path = ":".join(str(folder / path) for path in build["library_path"])
    daemon = str(folder / build["daemon"])
    if build["loader"]:
        print_arguments(["", str(folder / build["loader"]), "--library-path", library_path, daemon])
    else:
        print_arguments([library_path, daemon])


def load(record, contender, sandbox):
    """The arguments of `dbduel load` that do to the contender of a sandbox what the contest did."""
    plan = read(f"{record}/plan.json")
    level = plan["levels"][0]
    settings = {entry["name"]: entry["value"] for entry in plan["contenders"][int(contender)]["settings"]}
    sandbox = pathlib.Path(sandbox)
    threads = ["--threads", str(plan["load"]["threads"])]
    if (sandbox / "data/dbduel.sqlite").exists():
        pragmas = "&".join(f"{name}={value}" for name, value in settings.items())
        address = f"sqlite:{sandbox}/data/dbduel.sqlite?{pragmas}"
        # Contests have a thread for each client of SQLite, and so has `load`.
        threads = []
    elif (sandbox / "dbduel.conf").exists():
        address = f"postgresql://dbduel@{value_of(sandbox / 'dbduel.conf', 'unix_socket_directories')}"
    else:
        address = f"unix://dbduel@{value_of(sandbox / 'my.cnf', 'socket')}"
    workload = plan["workload"]
    if level["arrival"]["kind"] != "closed":
        sys.exit("short_and_long: classic runs are closed loops")
    arguments = ["--server", address, "--workload", workload["name"], "--clients", str(level["clients"]), *threads]
    arguments += ["--think-time", f"{level['arrival']['think_ms']} ms"]
    for name, value in workload["parameters"].items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if text != "":
            arguments += ["--set", f"{name}={text}"]
    print_arguments(arguments)


def value_of(configuration, name):
    for line in configuration.read_text().splitlines():
        key, _, value = line.partition("=")
        if key.strip() == name:
            return value.strip().strip("'\"")
    sys.exit(f"short_and_long: {configuration} has no {name}")


def sockets(folder):
    """Folders of sockets outside of the sandboxes, which have them where paths are long."""
    for owner in pathlib.Path(folder).glob("*/owner.json"):
        outside = read(owner)["socket_folder"]
        if outside:
            print(outside)


def rate(output):
    document = read(output)
    if document["lost"] or document["interrupted"]:
        sys.exit(f"short_and_long: {output} was cut short")
    print(f"{document['total']['per_second']:.3f}")


def duel(record):
    """Of a record's only duel: ratio, ends of its interval (not a number where there is none), verdict, length of turns."""
    summary = read(f"{record}/report.json")["summary"]
    only = summary["duels"][0]
    comparison = only["comparisons"][0]
    ratio = comparison["ratio"]
    turns = only.get("turns")
    times = 1
    for line in pathlib.Path(record, "events.jsonl").read_text().splitlines():
        what = json.loads(line)["what"]
        if what["event"] == "turns-lengthened":
            times = max(times, what["times"])
    if turns:
        turn = f"{turns['turn_s']:.3g}" + (f" to {turns['turn_s'] * times:.3g}" if times > 1 else "")
    else:
        # Think times have fixed slices.
        turn = f"{summary['schedule']['slice_s']:.3g} (fixed)"
    has_interval = ratio["state"] == "estimated"
    ends = [ratio.get("low"), ratio.get("high")] if has_interval else [math.nan, math.nan]
    # An end that no data bound.
    ends = [0.0 if ends[0] is None else ends[0], math.inf if ends[1] is None else ends[1]]
    return ratio.get("value", math.nan), *ends, comparison["verdict"], turn


def paired_ratio(first, second):
    """Ratio of means, and the 95 % t-interval of the mean of the log ratios of neighbouring runs."""
    logs = [math.log(b / a) for a, b in zip(first, second)]
    mean = statistics.mean(logs)
    half = T_QUANTILES[len(logs) - 2] * statistics.stdev(logs) / math.sqrt(len(logs))
    return statistics.mean(second) / statistics.mean(first), math.exp(mean - half), math.exp(mean + half)


def line(name, default, slices, classic):
    """The line of a pair in the results."""
    plan = read(f"{default}/plan.json")
    runs = [row.split("\t") for row in pathlib.Path(classic).read_text().splitlines()]
    first, second = ([float(row[2]) for row in runs if row[1] == contender] for contender in "01")
    alone = paired_ratio(first, second)
    workload = plan["workload"]["name"]
    if workload == "script":
        workload = pathlib.Path(plan["workload"]["parameters"]["script"]).name
    *short, turn = duel(default)
    fields = [name, workload, plan["levels"][0]["clients"], *short, turn, *duel(slices)[:4], *alone]
    fields += [statistics.mean(first), statistics.mean(second)]
    print("\t".join(f"{field:.6g}" if isinstance(field, float) else str(field) for field in fields))


def shown(row, way):
    """A ratio with its interval."""
    ratio, low, high = (float(row[f"{way}{end}"]) for end in ("", "_low", "_high"))
    text = "no ratio" if math.isnan(ratio) else f"{ratio:.3g}"
    text += " (no interval)" if math.isnan(low) else f" ({low:.3g} to {high:.3g})"
    return f"{text} void" if row.get(f"{way}_verdict") == "void" else text


def interval(row, way):
    low, high = float(row[f"{way}_low"]), float(row[f"{way}_high"])
    return None if math.isnan(low) or math.isnan(high) else (low, high)


def sign(ends):
    """1 or -1 where an interval excludes a ratio of 1, else 0."""
    return (ends[0] > 1) - (ends[1] < 1)


def yes(answer):
    return "-" if answer is None else ("yes" if answer else "no")


def overlap(one, other):
    if one is None or other is None:
        return None
    return one[0] <= other[1] and other[0] <= one[1]


def signs_differ(one, other):
    return one is not None and other is not None and sign(one) * sign(other) < 0


def table(slice_s, *files):
    rows = [dict(zip(COLUMNS, pathlib.Path(file).read_text().rstrip("\n").split("\t"))) for file in files]
    heading = [
        "pair", "workload, clients", "default: ratio", "turns, s", f"slices of {slice_s} s: ratio", "classic: ratio",
        f"overlap default/{slice_s} s", "overlap default/classic", "same sign",
    ]
    lines = [heading]
    agree, differ, lacking = 0, 0, 0
    for row in rows:
        default, slices, classic = (interval(row, way) for way in ("default", "slices", "classic"))
        overlaps = overlap(default, slices), overlap(default, classic)
        opposite = signs_differ(default, slices) or signs_differ(default, classic)
        agree += overlaps == (True, True)
        differ += opposite
        lacking += None in (default, slices, classic)
        lines.append([
            row["pair"], f"{row['workload']}, {row['clients']}", shown(row, "default"), row["turn_s"], shown(row, "slices"),
            shown(row, "classic"), yes(overlaps[0]), yes(overlaps[1]), yes(not opposite),
        ])
    widths = [max(len(cells[column]) for cells in lines) for column in range(len(heading))]
    for number, cells in enumerate(lines):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |")
        if number == 0:
            print("| " + " | ".join("-" * width for width in widths) + " |")
    last = f"{agree} of {len(rows)} pairs: default and long overlap; {differ} signs differ"
    if lacking:
        last += f"; {lacking} without all intervals"
    print(last)
    if agree < len(rows) or differ:
        sys.exit(DISAGREE)


if __name__ == "__main__":
    ACTIONS = {"server": server, "load": load, "sockets": sockets, "rate": rate, "line": line, "table": table}
    ACTIONS[sys.argv[1]](*sys.argv[2:])
