"""What is held against the faults: the vendors' own SDKs, and fawn through its C library.

Each client answers one question and says what came of it.
"""

import ctypes
import json

from faults import ALL_OF_IT

# Both have this much time for an answer to begin, and for each silence in it.
TIMEOUT_SECONDS = 1.0

WHOLE = "the whole answer"
PART_AS_WHOLE = "a part of the answer, as if it were whole"


def outcome(text: str) -> str:
    return WHOLE if text.strip() == ALL_OF_IT else PART_AS_WHOLE


def failed(error: BaseException) -> str:
    name = type(error).__name__
    module = type(error).__module__.split(".")[0]
    # What the SDK documents, or what slipped through it.
    known = module in ("openai", "anthropic")
    return f"error {name}" if known else f"error {name} of {module}, not one of the SDK's"


class OpenAiSdk:
    title = "openai SDK"
    path = "/v1"

    def ask(self, url: str) -> str:
        import openai

        client = openai.OpenAI(base_url=url + self.path, api_key="sk-test", timeout=TIMEOUT_SECONDS)
        try:
            messages = [{"role": "user", "content": "count"}]
            chunks = client.chat.completions.create(model="m", messages=messages, stream=True)
            text = "".join(
                choice.delta.content or "" for chunk in chunks for choice in chunk.choices
            )
            result = outcome(text)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is the result)
            result = failed(error)
        return result


class AnthropicSdk:
    title = "anthropic SDK"
    path = "/anthropic"

    def ask(self, url: str) -> str:
        import anthropic

        client = anthropic.Anthropic(
            base_url=url + self.path, api_key="sk-test", timeout=TIMEOUT_SECONDS
        )
        try:
            messages = [{"role": "user", "content": "count"}]
            with client.messages.stream(model="m", max_tokens=100, messages=messages) as stream:
                result = outcome("".join(stream.text_stream))
        except Exception as error:  # noqa: BLE001
            result = failed(error)
        return result


class Buf(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("len", ctypes.c_size_t), ("owner", ctypes.c_size_t)]


class Fawn:
    """The library, with the defaults of its retries, or with `retry_after_partial` too."""

    def __init__(self, library: str, provider: str, members: dict) -> None:
        self.title = "fawn" + "".join(f", {name}" for name in members)
        self.path = {"openai": "/v1", "anthropic": "/anthropic/v1"}[provider]
        self.model = {
            "provider": provider, "model": "m", "api_key": "sk-test", "max_tokens": 100,
            "first_byte_timeout_ms": int(TIMEOUT_SECONDS * 1000),
            "between_bytes_timeout_ms": int(TIMEOUT_SECONDS * 1000), **members,
        }  # fmt: skip
        self.lib = ctypes.CDLL(library)

    def call(self, name: str, *arguments: object, makes: bool = False, text: str = "{}") -> object:
        """Calls a function that takes JSON: gives its answer, or the handle that it makes."""
        data, buf, handle = text.encode(), Buf(), ctypes.c_uint64()
        before = [ctypes.c_uint64(value) for value in arguments]
        out = [ctypes.byref(handle)] if makes else []
        function = getattr(self.lib, name)
        function.restype = ctypes.c_int32
        status = function(*before, data, ctypes.c_size_t(len(data)), *out, ctypes.byref(buf))
        answer = ctypes.string_at(buf.data, buf.len) if buf.data else b""
        self.lib.fawn_buf_free(ctypes.byref(buf))
        if status < 0:
            raise RuntimeError(answer.decode())
        return handle.value if makes else answer

    def ask(self, url: str) -> str:
        runtime = ctypes.c_uint64()
        buf = Buf()
        config = b'{"workers":0}'
        length = ctypes.c_size_t(len(config))
        self.lib.fawn_runtime_new(1, config, length, ctypes.byref(runtime), ctypes.byref(buf))
        try:
            model = {**self.model, "base_url": url + self.path}
            assembly = self.call(
                "fawn_assembly_new", runtime.value, makes=True, text=json.dumps({"model": model})
            )
            thread = self.call("fawn_thread_open", runtime.value, makes=True)
            queue = self.call("fawn_queue_new", runtime.value, makes=True)
            request = json.dumps({"input": {"messages": ["count"]}})
            self.call("fawn_run_start", assembly, thread, queue, makes=True, text=request)
            text, end = "", None
            while end is None:
                for event in self.take(queue):
                    data = event["data"]
                    if event["type"] == "message_delta":
                        text += data.get("text", "")
                    elif event["type"] == "stream_reset":
                        text = ""
                    elif event["type"] == "run_end":
                        end = data
            if end["status"] == "success":
                return outcome(text)
            kept = ", the part kept" if text else ""
            return f"error {end['error']['code']}{kept}"
        finally:
            self.lib.fawn_runtime_free(runtime)

    def take(self, queue: int) -> list[dict]:
        buf = Buf()
        self.lib.fawn_queue_take.restype = ctypes.c_int32
        status = self.lib.fawn_queue_take(
            ctypes.c_uint64(queue), ctypes.c_int64(60_000), ctypes.c_uint32(0), ctypes.byref(buf)
        )
        if status != 0:
            raise RuntimeError(f"fawn_queue_take: {status}")
        events = json.loads(ctypes.string_at(buf.data, buf.len))
        self.lib.fawn_buf_free(ctypes.byref(buf))
        return events
