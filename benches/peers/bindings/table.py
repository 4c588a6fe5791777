"""Reads the bindings' JSON lines and prints one table: each figure beside C's, and whether it is what is asked.

With BENCH_CHECK=1 the exit code is 1 if one is not.
"""

import json
import os
import sys

# Times C at most for a time, events a second at least for a rate.
ASKED = {
    ("cpp", "state_small"): 1.1,
    ("go", "state_small"): 3.0,
    ("node", "state_small"): 6.0,
    ("cpp", "events"): 300_000,
    ("go", "events"): 300_000,
    ("node", "events"): 150_000,
}


def shown(line: dict) -> str:
    return f"{line['ns']:,.0f} ns" if "ns" in line else f"{line['per_s']:,.0f}/s"


def main() -> int:
    lines = [json.loads(line) for line in sys.stdin if line.startswith("{")]
    lines = [line for line in lines if "ns" in line or "per_s" in line]
    # A language that ran several times counts with its best figure.
    best: dict[tuple[str, str], dict] = {}
    for line in lines:
        held = best.setdefault((line["case"], line["lang"]), line)
        if line.get("ns", 0) < held.get("ns", 0) or line.get("per_s", 0) > held.get("per_s", 0):
            best[line["case"], line["lang"]] = line
    rows = [("case", "language", "figure", "times C", "asked", "")]
    short = False
    for (case, lang), line in best.items():
        c = best.get((case, "c"))
        ratio = None
        if c is not None:
            ratio = line["ns"] / c["ns"] if "ns" in line else line["per_s"] / c["per_s"]
        asked = ASKED.get((lang, case))
        told, verdict = "", ""
        if asked is not None and "ns" in line:
            told = f"<= {asked:g} times"
            verdict = "yes" if ratio is not None and ratio <= asked else "NO"
        elif asked is not None:
            told = f">= {asked:,}/s"
            verdict = "yes" if line["per_s"] >= asked else "NO"
        short = short or verdict == "NO"
        rows.append((case, lang, shown(line), "-" if ratio is None else f"{ratio:.2f}", told, verdict))
    rows[1:] = sorted(rows[1:], key=lambda row: row[0])
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        left = "  ".join(cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True))
        print(left, *(cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)), sep="  ")
    return 1 if short and os.environ.get("BENCH_CHECK") == "1" else 0


if __name__ == "__main__":
    sys.exit(main())
