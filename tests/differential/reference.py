"""The reference side: LangGraph's `add_messages` and LangChain's `convert_to_messages`, with foreseeable ids."""

import json
import uuid
import warnings
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages
from langgraph.graph.message import add_messages

warnings.simplefilter("ignore")

NULL_WRITE = "Must specify non-null arguments for both 'left' and 'right'. Only received: '{}'."


class Counter:
    """Stands in for `uuid.uuid4`: 1, 2, 3 … in the last group."""

    def __init__(self) -> None:
        self.next = 1

    def __call__(self) -> uuid.UUID:
        value = uuid.UUID(f"00000000-0000-4000-8000-{self.next:012x}")
        self.next += 1
        return value


COUNTER = Counter()
# LangGraph calls it as an attribute of the module, so that one place is enough; `check` proves it.
uuid.uuid4 = COUNTER


def check() -> None:
    """Stops unless the ids of messages come from the counter."""
    COUNTER.next = 1
    ids = [message.id for message in add_messages(["x"], ["y"])]
    expected = [f"00000000-0000-4000-8000-{n:012x}" for n in (1, 2)]
    if ids != expected:
        raise SystemExit(f"LangGraph did not take its ids from the counter: {ids}")


def dump(messages: list[Any]) -> list[Any]:
    return [m.model_dump(mode="json") if isinstance(m, BaseMessage) else m for m in messages]


def convert(messages: list[Any]) -> list[Any]:
    return dump(convert_to_messages(fresh(messages)))


def fold(existing: Any, updates: list[Any]) -> tuple[list[Any], list[int]]:
    """Folds the updates into `existing`, one `add_messages` for each.

    Answers the canonical messages and, for each update, the number that the next id would have had after it.

    The fold that fawn promises and `add_messages` part in two places, where the fold's rule is taken: without writes
    the state is answered untouched (raw elements stay raw), and a null state is a value that is no message, which is
    looked at only after the first write turned out not to be null.
    """
    COUNTER.next = 1
    if not updates:
        return list(fresh(existing)), []
    if existing is None:
        if updates[0] is None:
            raise ValueError(NULL_WRITE.format("right"))
        raise NotImplementedError("the state is null, which is no message")
    state, after = fresh(existing), []
    for update in updates:
        state = add_messages(state, fresh(update))
        after.append(COUNTER.next)
    return dump(state), after


def fresh(value: Any) -> Any:
    """A copy that shares nothing: the reference takes members out of the objects that it is given."""
    return json.loads(json.dumps(value))
