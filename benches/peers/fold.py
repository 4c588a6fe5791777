"""Times LangGraph's `add_messages` from text to text, and fawn through ctypes on the same files: `fold.py DIRECTORY`.

The two take turns, so that a noisy moment of the machine hits both. FAWN_LIB names the library; without it only the
peer is timed. FOLD_RUNS is the number of runs; figures are medians. One JSON line per case and peer.
"""

import importlib.metadata
import json
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable

from langgraph.graph.message import add_messages

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "differential"))
from fawn import Fawn  # noqa: E402

CASES = ["append", "writes"]


def langgraph(request: bytes) -> bytes:
    parsed = json.loads(request)
    state = parsed["existing"]
    for update in parsed["updates"]:
        state = add_messages(state, update)
    # The faster of the two ways to JSON; `json.dumps` of `model_dump` takes longer.
    return ("[" + ",".join([message.model_dump_json() for message in state]) + "]").encode()


def seconds(call: Callable[[bytes], bytes], request: bytes) -> float:
    begin = time.perf_counter()
    call(request)
    return time.perf_counter() - begin


def report(peer: str, version: str, case: str, times: list[float]) -> None:
    us = round(statistics.median(times) * 1e6, 1)
    line = {"peer": peer, "version": version, "case": case, "us_per_run": us, "samples": len(times)}
    print(json.dumps(line), flush=True)


def main() -> None:
    directory, runs = pathlib.Path(sys.argv[1]), int(os.environ.get("FOLD_RUNS", "5"))
    path = os.environ.get("FAWN_LIB")
    fawn = Fawn(path) if path else None

    def reduce(request: bytes) -> bytes:
        return fawn.reduce_text(b"messages", request)

    for case in CASES:
        request = (directory / f"{case}.json").read_bytes()
        expected = json.loads(langgraph(request))
        if fawn and json.loads(reduce(request)) != expected:
            raise SystemExit(f"{case}: fawn's answer is not LangGraph's")
        theirs, ours = [], []
        for _ in range(runs):
            theirs.append(seconds(langgraph, request))
            if fawn:
                ours.append(seconds(reduce, request))
        report("langgraph", importlib.metadata.version("langgraph"), case, theirs)
        if fawn:
            report("fawn (Python)", fawn.version(), case, ours)


if __name__ == "__main__":
    main()
