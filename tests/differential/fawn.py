"""Calls libfawn's calls that need no runtime, by ctypes: `fawn_reduce` and `fawn_messages_convert`."""

import ctypes
import json
import os
from typing import Any

OK = 0


class Buf(ctypes.Structure):
    """`fawn_buf`: text that the library owns until `fawn_buf_free`."""

    _fields_ = [("data", ctypes.c_void_p), ("len", ctypes.c_size_t), ("owner", ctypes.c_size_t)]


class FawnError(Exception):
    """A call that failed; `error` is the error object as the library gave it."""

    def __init__(self, status: int, error: dict[str, Any]) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.status = status
        self.error = error

    @property
    def code(self) -> str:
        return self.error.get("code", "")

    @property
    def message(self) -> str:
        return self.error.get("message", "")


class BrokenContract(Exception):
    """The library answered something that its own header rules out."""


class Fawn:
    """One loaded copy of the library."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        lib = ctypes.CDLL(self.path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        text = [ctypes.c_char_p, ctypes.c_size_t]
        lib.fawn_version.restype = ctypes.c_char_p
        lib.fawn_version.argtypes = []
        lib.fawn_buf_free.restype = None
        lib.fawn_buf_free.argtypes = [ctypes.POINTER(Buf)]
        lib.fawn_reduce.restype = ctypes.c_int32
        lib.fawn_reduce.argtypes = [*text, *text, ctypes.POINTER(Buf)]
        lib.fawn_messages_convert.restype = ctypes.c_int32
        lib.fawn_messages_convert.argtypes = [*text, ctypes.POINTER(Buf)]
        self._lib = lib

    def version(self) -> str:
        return self._lib.fawn_version().decode()

    def reduce_text(self, channel: bytes, request: bytes) -> bytes:
        """The merged value as text. Raises FawnError."""
        buf = Buf()
        status = self._lib.fawn_reduce(channel, len(channel), request, len(request), ctypes.byref(buf))
        return self._answer(status, buf)

    def reduce(self, channel: str, request: Any) -> Any:
        return json.loads(self.reduce_text(channel.encode(), encode(request)))

    def convert(self, messages: Any) -> Any:
        request, buf = encode({"messages": messages}), Buf()
        status = self._lib.fawn_messages_convert(request, len(request), ctypes.byref(buf))
        return json.loads(self._answer(status, buf))

    def _answer(self, status: int, buf: Buf) -> bytes:
        try:
            text = ctypes.string_at(buf.data, buf.len) if buf.data else b""
            if buf.data and ctypes.string_at(buf.data + buf.len, 1) != b"\0":
                raise BrokenContract("the answer does not end with a NUL")
        finally:
            self._lib.fawn_buf_free(ctypes.byref(buf))
        if status == OK:
            return text
        if status > 0:
            raise BrokenContract(f"a reducer answered the expected outcome {status}, which it has no use for")
        try:
            error = json.loads(text)
        except ValueError:
            raise BrokenContract(f"status {status} came with no error object: {text[:200]!r}") from None
        if not isinstance(error, dict) or error.get("status") != status or not error.get("code"):
            raise BrokenContract(f"status {status} came with the error object {error!r}")
        raise FawnError(status, error)


def encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
