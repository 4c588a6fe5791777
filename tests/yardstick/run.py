"""Holds the vendors' own SDKs and fawn against the same faults and prints a table: LIBRARY [FILE].

FILE takes the table. Ends with 1 when fawn does worse than an SDK: a worse outcome, more attempts where one would do, or a
finding of llmock's that the SDK has not got.
"""

import os
import pathlib
import queue
import sys
import threading

from clients import PART_AS_WHOLE, WHOLE, AnthropicSdk, Fawn, OpenAiSdk
from faults import FAULTS, Fault, Llmock, Raw


# Longer than any client that gives up needs here.
PATIENCE_SECONDS = 20
WAITS = f"nothing, it is still waiting after {PATIENCE_SECONDS} s"


def rank(result: str) -> int:
    """How good an outcome is: whole, an error that can be told apart, some error, no end or half an answer unnoticed."""
    if result == WHOLE:
        return 3
    if result in (PART_AS_WHOLE, WAITS):
        return 0
    return 1 if "not one of" in result else 2


class Tried:
    def __init__(self, client: object, fault: Fault, llmock: Llmock, raw: Raw) -> None:
        server = llmock if fault.llmock else raw
        server.script(fault)
        answers: queue.Queue[str | BaseException] = queue.Queue()

        def ask() -> None:
            try:
                answers.put(client.ask(server.url))
            except BaseException as error:  # noqa: BLE001 (raised again below)
                answers.put(error)

        threading.Thread(target=ask, daemon=True).start()
        try:
            answer = answers.get(timeout=PATIENCE_SECONDS)
        except queue.Empty:
            answer = WAITS
        if isinstance(answer, BaseException):
            raise answer
        self.result = answer
        self.attempts, self.findings = server.attempts(), server.findings()

    def cell(self) -> str:
        times = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        found = f"; llmock finds {', '.join(self.findings)}" if self.findings else ""
        return f"{self.result}, {times}{found}"

    def is_worse_than(self, other: "Tried", fault: Fault) -> bool:
        if rank(self.result) != rank(other.result):
            return rank(self.result) < rank(other.result)
        if not fault.passes and self.attempts > other.attempts:
            return True
        return bool(set(self.findings) - set(other.findings))


def main() -> int:
    library = sys.argv[1]
    llmock, raw = Llmock(), Raw()
    worse, text = [], []
    try:
        for sdk, provider in [(OpenAiSdk(), "openai"), (AnthropicSdk(), "anthropic")]:
            ours = [
                Fawn(library, provider, {}),
                Fawn(library, provider, {"retry_after_partial": True}),
            ]
            try:
                llmock.script(None)
                ours[0].ask(llmock.url)
            except RuntimeError as error:
                print(f"skipped: {provider} is not in this library: {error}", file=sys.stderr)
                continue
            titles = [sdk.title, *(client.title for client in ours)]
            text += [f"## {provider}", "", "| fault | " + " | ".join(titles) + " |", "|---|---|---|---|"]
            for fault in FAULTS:
                theirs, plain, partial = (
                    Tried(client, fault, llmock, raw) for client in [sdk, *ours]
                )
                row = " | ".join([fault.name, theirs.cell(), plain.cell(), partial.cell()])
                text.append(f"| {row} |")
                print(text[-1], file=sys.stderr)
                for client, tried in zip(ours, [plain, partial]):
                    if tried.is_worse_than(theirs, fault):
                        worse.append(f"{provider}, {fault.name}: {client.title}: {tried.cell()}")
            text.append("")
    finally:
        llmock.stop()
    table = "\n".join(text)
    if len(sys.argv) > 2:
        path = pathlib.Path(sys.argv[2])
        start = path.read_text(encoding="utf-8").split("## ")[0]
        path.write_text(start + table, encoding="utf-8")
    else:
        print(table)
    for line in worse:
        print(f"worse: {line}", file=sys.stderr)
    return 1 if worse else 0


status = main()
sys.stdout.flush()
# A client may be waiting yet.
os._exit(status)
