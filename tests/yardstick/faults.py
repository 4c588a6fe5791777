"""The faults that clients are held against, and the servers that make them: llmock, and one of our own for what it lacks."""

import json
import pathlib
import socket
import subprocess
import threading
import urllib.request
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Fault:
    name: str
    # What llmock is told to do, or for each request in turn the answer of our own server; the last one stays.
    llmock: dict | None = None
    answers: tuple[str, ...] = ()
    # Whether trying again can help. If not, more than one attempt is a fault of the client.
    passes: bool = True


FAULTS = [
    Fault("429 twice, Retry-After 1 s", {"type": "fail", "status": 429, "retry_after": 1, "times": 2}),
    Fault("408", {"type": "fail", "status": 408}),
    Fault("409", {"type": "fail", "status": 409}),
    Fault("500", {"type": "fail", "status": 500}),
    Fault("503 twice", {"type": "fail", "status": 503, "times": 2}),
    Fault("529", {"type": "fail", "status": 529}),
    Fault("503 for good", {"type": "fail", "status": 503, "times": 3}),
    Fault("400", {"type": "fail", "status": 400}, passes=False),
    Fault("401", {"type": "fail", "status": 401}, passes=False),
    Fault("403", {"type": "fail", "status": 403}, passes=False),
    Fault("404", {"type": "fail", "status": 404}, passes=False),
    Fault("422", {"type": "fail", "status": 422}, passes=False),
    Fault("429, Retry-After as a date, 2 s away", answers=("429 date", "whole")),
    Fault("429, retry-after-ms 300", answers=("429 ms", "whole")),
    Fault("429, Retry-After one year", answers=("429 year",), passes=False),
    Fault("503, x-should-retry: false", answers=("503 never", "whole"), passes=False),
    Fault("400, x-should-retry: true", answers=("400 always", "whole")),
    Fault("429, the account has no quota left", answers=("429 quota",), passes=False),
    Fault("connection closed before an answer", answers=("close", "whole")),
    Fault("connection reset in the head of the answer", answers=("reset", "whole")),
    Fault("no answer within the timeout", {"type": "delay", "seconds": 2.5}),
    Fault("stream cut before any text, connection closed", {"type": "stream_fault", "kind": "disconnect", "after_chunks": 0}),
    Fault("stream ends early before any text", {"type": "stream_fault", "kind": "truncate", "after_chunks": 0}),
    Fault("stream stalls before any text", {"type": "stream_fault", "kind": "stall", "after_chunks": 0, "stall_seconds": 5}),
    Fault("garbled event before any text", {"type": "stream_fault", "kind": "malformed", "after_chunks": 0}),
    Fault("stream cut after text, connection closed", {"type": "stream_fault", "kind": "disconnect", "after_chunks": 6}),
    Fault("stream ends early after text", {"type": "stream_fault", "kind": "truncate", "after_chunks": 6}),
    Fault("stream stalls after text", {"type": "stream_fault", "kind": "stall", "after_chunks": 6, "stall_seconds": 5}),
    Fault("garbled event after text", {"type": "stream_fault", "kind": "malformed", "after_chunks": 6}),
    Fault("error event after status 200, before any text", answers=("error event", "whole")),
]  # fmt: skip

ALL_OF_IT = "one two three four five six seven eight nine ten"


class Llmock:
    """A running llmock that always says the same."""

    def __init__(self) -> None:
        program = ROOT / "target/test-tools/llmock/bin/llmock"
        options = ["--port", "0", "--host", "127.0.0.1", "--tool-mode", "off"]
        # Time to see that a client has closed a stream before all of it is sent.
        options += ["--stream-chunk-delay-ms", "10"]
        self.process = subprocess.Popen(
            [program, "serve", *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        for line in self.process.stderr:
            if "running on http://" in line:
                self.url = line.split("running on ")[1].split()[0]
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def script(self, fault: Fault | None) -> None:
        self._call("POST", "reset")
        # Asked for more often than any client tries.
        reply = {"type": "reply", "text": ALL_OF_IT, "times": 20}
        self._call("POST", "scenario", {"behaviors": [*([fault.llmock] if fault else []), reply]})

    def attempts(self) -> int:
        return self._call("GET", "requests")["count"]

    def findings(self) -> list[str]:
        return [finding["code"] for finding in self._call("GET", "verdict")["findings"]]

    def _call(self, method: str, name: str, body: dict | None = None) -> dict:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{self.url}/_llmock/{name}", data, method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


class Raw:
    """Answers the n-th request with the n-th of the named answers, byte for byte."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.answers: tuple[str, ...] = ()
        self.count = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def script(self, fault: Fault) -> None:
        self.answers, self.count = fault.answers, 0

    def attempts(self) -> int:
        return self.count

    def findings(self) -> list[str]:
        return []

    def _accept(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            data = b""
            while b"\r\n\r\n" not in data:
                more = connection.recv(65536)
                if not more:
                    return
                data += more
            head, body = data.split(b"\r\n\r\n", 1)
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
            while len(body) < int(fields.get(b"content-length", b"0")):
                body += connection.recv(65536)
            answer = self.answers[min(self.count, len(self.answers) - 1)]
            self.count += 1
            is_anthropic = b"/messages" in head.split(b"\r\n")[0]
            if answer == "reset":
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-")
                linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            elif answer != "close":
                connection.sendall(response(answer, is_anthropic))


def response(answer: str, is_anthropic: bool) -> bytes:
    if answer in ("whole", "error event"):
        events = whole(is_anthropic) if answer == "whole" else error_event(is_anthropic)
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        return head.encode() + events
    status, what = answer.split()
    fields = {
        "date": "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:49:39 GMT\r\n",
        "ms": "retry-after-ms: 300\r\n",
        "year": "retry-after: 31536000\r\n",
        "never": "x-should-retry: false\r\n",
        "always": "x-should-retry: true\r\n",
        "quota": "",
    }[what]
    error = {"message": "no", "type": "insufficient_quota", "code": "insufficient_quota"}
    body = json.dumps({"error": error if what == "quota" else {"message": "no"}})
    if what == "date":
        # The clients compare with their own clock, so the date is a real one.
        import email.utils
        import time

        now = time.time()
        date, until = (email.utils.formatdate(at, usegmt=True) for at in (now, now + 2))
        fields = f"date: {date}\r\nretry-after: {until}\r\n"
    head = f"HTTP/1.1 {status} No\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}{fields}connection: close\r\n\r\n{body}".encode()


def event(data: dict, name: str | None = None) -> bytes:
    prefix = f"event: {name}\n" if name else ""
    return f"{prefix}data: {json.dumps(data)}\n\n".encode()


def whole(is_anthropic: bool) -> bytes:
    if not is_anthropic:
        common = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        deltas = [({"role": "assistant", "content": ALL_OF_IT}, None), ({}, "stop")]
        chunks = [
            event({**common, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
            for delta, reason in deltas
        ]
        return b"".join(chunks) + b"data: [DONE]\n\n"
    start = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
             "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    return b"".join(
        event(data, data["type"])
        for data in [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ALL_OF_IT}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ]
    )  # fmt: skip


def error_event(is_anthropic: bool) -> bytes:
    if is_anthropic:
        error = {"type": "overloaded_error", "message": "busy"}
        return event({"type": "error", "error": error}, "error")
    return event({"error": {"type": "server_error", "message": "busy", "code": 500}})
