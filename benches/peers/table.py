"""Reads the peers' JSON lines and prints one table: time per run, and how many times fawn's time that is."""

import json
import sys


def time(us: float) -> str:
    if us >= 1e6:
        return f"{us / 1e6:.2f} s"
    return f"{us / 1e3:.2f} ms" if us >= 1e3 else f"{us:.1f} µs"


def main() -> None:
    lines = [json.loads(line) for line in sys.stdin if line.startswith("{")]
    # Cases with a unit of their own have no peer.
    lines = [line for line in lines if "us_per_run" in line]
    ours = {line["case"]: line["us_per_run"] for line in lines if line["peer"] == "fawn"}
    rows = [("case", "who", "version", "median", "samples", "peer / fawn")]
    for case in dict.fromkeys(line["case"] for line in lines):
        for line in sorted((line for line in lines if line["case"] == case), key=lambda line: line["us_per_run"]):
            us, base = line["us_per_run"], ours.get(case)
            ratio = "-" if base is None else f"{us / base:.2f}"
            rows.append((case, line["peer"], line.get("version", ""), time(us), str(line.get("samples", "")), ratio))
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        left = "  ".join(cell.ljust(width) for cell, width in zip(row[:3], widths[:3], strict=True))
        print(left, *(cell.rjust(width) for cell, width in zip(row[3:], widths[3:], strict=True)), sep="  ")


if __name__ == "__main__":
    main()
