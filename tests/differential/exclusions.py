"""Inputs whose outcome in the reference is an accident of Python, listed once with the reason.

fawn may answer these as it likes, as long as it answers: the comparison calls it with them and checks only that. A row
looks at every object inside the case; `--no-exclusions` compares them too.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from objects(item)


def is_tool(message: dict[str, Any]) -> bool:
    role = message.get("role", message.get("type"))
    ident = message.get("id")
    envelope = isinstance(ident, list) and bool(ident) and ident[-1] in ("ToolMessage", "ToolMessageChunk")
    return role == "tool" or envelope or "tool_call_id" in message


def python_text_as_content(message: dict[str, Any]) -> bool:
    content = message.get("content")
    if not is_tool(message) or not content or isinstance(content, str):
        return False
    return not isinstance(content, list) or any(not isinstance(item, (str, dict)) for item in content)


def long_float(value: Any) -> bool:
    return isinstance(value, float) and ("e" in repr(value))


def odd_arguments(message: dict[str, Any]) -> bool:
    text = message.get("arguments")
    if not isinstance(text, str):
        return False
    integers = (int(digits) for digits in re.findall(r"-?\d{19,}", text))
    if any(not -(2**63) <= integer < 2**64 for integer in integers) or re.search(r"e\+?\d{3,}", text, re.IGNORECASE):
        return True
    unpaired = re.sub(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..", "", text)
    return "NaN" in text or "Infinity" in text or re.search(r"\\u[dD][89a-fA-F]", unpaired) is not None


# (name, reason, whether an object of the case is one)
TABLE: list[tuple[str, str, Callable[[dict[str, Any]], bool]]] = [
    (
        "tool-content-as-python-text",
        "content of a tool message that is no text and no list of texts and objects becomes Python's str() of it",
        python_text_as_content,
    ),
    (
        "tool-call-id-as-python-text",
        "a tool_call_id that is a boolean or a float in exponent notation becomes Python's text of it",
        lambda m: isinstance(m.get("tool_call_id"), bool) or long_float(m.get("tool_call_id")),
    ),
    (
        "float-id-in-exponent-notation",
        "an id that is a float becomes Python's repr of it, which switches to exponents in its own places",
        lambda m: long_float(m.get("id")),
    ),
    (
        "tool-calls-container",
        "tool_calls that is a text or an object is iterated: letters, or keys",
        lambda m: isinstance(m.get("tool_calls"), (str, dict)) and bool(m["tool_calls"]),
    ),
    (
        "function-container",
        "a tool call whose function is no object is still indexed, as Python indexes texts and lists",
        lambda m: "function" in m and not isinstance(m["function"], dict),
    ),
    (
        "additional-kwargs-container",
        "additional_kwargs that is a list or a text goes through dict.update, which takes lists of pairs",
        lambda m: isinstance(m.get("additional_kwargs"), (list, str)) and bool(m["additional_kwargs"]),
    ),
    (
        "envelope-version-equal-to-one",
        "an envelope is recognised by lc == 1, which true and 1.0 are in Python",
        lambda m: m.get("lc") is True or isinstance(m.get("lc"), float),
    ),
    (
        "arguments-beyond-json",
        "in arguments Python's JSON takes NaN, Infinity, lone surrogates, integers and exponents of any size",
        odd_arguments,
    ),
]


def excluded(case: dict[str, Any]) -> str | None:
    """The name of the row that this case falls under."""
    if case["kind"] == "fold" and not case["updates"] and not isinstance(case["existing"], list):
        return "no-writes-on-a-state-that-is-no-list"
    for each in objects(case):
        for name, _, matches in TABLE:
            if matches(each):
                return name
    return None
