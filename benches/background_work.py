#!/usr/bin/env python3
"""Prints the table of benches/background_work.sh from its records."""

import csv
import glob
import json
import statistics
import sys


def of_contest(folder):
    """Background switches per second of load and bytes written per transaction: of each contender, in watched slices."""
    records = sorted(glob.glob(folder + "/*/report.json"))
    if not records:
        return None
    record = records[-1].removesuffix("report.json")
    slices, readings = {}, {}
    with open(record + "slices.csv", newline="") as rows:
        for row in csv.DictReader(rows):
            if row["class"] == "all":
                slices[row["block"], row["position"]] = row
    with open(record + "readings.csv", newline="") as rows:
        for row in csv.DictReader(rows):
            place = row["block"], row["position"]
            readings.setdefault(place, {})[row["source"], row["metric"]] = float(row["value"])
    sums = {}
    for place, row in slices.items():
        own = readings.get(place, {})
        switches = own.get(("server", "voluntary_switches_count"))
        sessions = own.get(("server", "connections_voluntary_switches_count"))
        if switches is None or sessions is None:
            continue
        # Of short turns samplers look at some.
        watched_s = own.get(("observer", "watched_s"), float(row["measured_s"]))
        sum_of = sums.setdefault(row["contender"], [0.0, 0.0])
        sum_of[0] += switches - sessions
        sum_of[1] += watched_s
    rates = [switches / seconds for switches, seconds in sums.values() if seconds > 0]
    with open(record + "report.json") as text:
        storage = json.load(text)["summary"]["storage"]
    written = [one.get("written_per_transaction_bytes") for one in storage]
    return rates, [value for value in written if value is not None]


def cell(values, form):
    if not values:
        return "–"
    text = form.format(statistics.mean(values))
    if len(values) > 1:
        text += " (" + form.format(min(values)) + " to " + form.format(max(values)) + ")"
    return text


def main():
    results, products = sys.argv[1], sys.argv[2:]
    print("| server | contenders | background switches per second of load | bytes written per transaction |")
    print("| --- | --- | ---: | ---: |")
    names = {"alone": "slices of 5 s, as alone", "two": "2, short turns", "eight": "8, short turns"}
    for product in products:
        for name, text in names.items():
            found = of_contest(f"{results}/{product}-{name}")
            if found is None:
                continue
            rates, written = found
            print(f"| {product} | {text} | {cell(rates, '{:.0f}')} | {cell(written, '{:.0f}')} |")


if __name__ == "__main__":
    main()
