"""Measures LangChain's `create_agent` on one run: two model turns with one tool call between them, threads in memory.

Prints one JSON line per case, as README.md describes. Settings come from the environment, so that every peer of one
comparison does the same: PEER_RUNS (runs per round), PEER_ROUNDS, PEER_THREADS (threads taken to turn 60).
"""

import importlib.metadata
import json
import os
import statistics
import time
from typing import Any

# Tracing would add work that nobody asked for, and send it over the network.
os.environ["LANGSMITH_TRACING"] = "false"

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

TURNS = 60
PROMPT = "What is 2 + 3?"
ANSWER = "The sum is 5."
MESSAGES_PER_RUN = 4


class Scripted(BaseChatModel):
    """Asks for the tool unless the last message is its result, so that any number of turns on one thread work."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "Scripted":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if isinstance(messages[-1], ToolMessage):
            reply = AIMessage(content=ANSWER)
        else:
            call = {"name": "add", "args": {"a": 2, "b": 3}, "id": "call_1", "type": "tool_call"}
            reply = AIMessage(content="", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])


@tool
def add(a: int, b: int) -> str:
    """Adds two integers."""
    return str(a + b)


def setting(name: str, default: int) -> int:
    return max(1, int(os.environ.get(name, default)))


def run(agent: Any, thread: str) -> int:
    """One run on the thread; answers how many messages the thread holds after it."""
    config = {"configurable": {"thread_id": thread}}
    messages = agent.invoke({"messages": [{"role": "user", "content": PROMPT}]}, config)["messages"]
    # No broken run is ever measured as a fast one.
    if messages[-1].content != ANSWER or messages[-2].content != "5":
        raise SystemExit(f"the scripted run went wrong: {messages}")
    return len(messages)


def timed(agent: Any, thread: str) -> tuple[float, int]:
    begin = time.perf_counter()
    held = run(agent, thread)
    return (time.perf_counter() - begin) * 1e6, held


def report(case: str, us: float, samples: int) -> None:
    version = importlib.metadata.version("langchain")
    line = {"peer": "langchain", "version": version, "case": case, "us_per_run": round(us, 2), "samples": samples}
    print(json.dumps(line), flush=True)


def main() -> None:
    runs, rounds, threads = setting("PEER_RUNS", 200), setting("PEER_ROUNDS", 5), setting("PEER_THREADS", 11)

    def fresh() -> Any:
        # A saver keeps every checkpoint for ever; a fresh one per round keeps rounds comparable.
        return create_agent(
            Scripted(), [add], system_prompt="You add numbers with the tool.", checkpointer=InMemorySaver()
        )

    warm = fresh()
    for n in range(min(runs, 50)):
        run(warm, f"warm-{n}")

    per_run = []
    for _ in range(rounds):
        agent = fresh()
        begin = time.perf_counter()
        for n in range(runs):
            run(agent, f"run-{n}")
        per_run.append((time.perf_counter() - begin) * 1e6 / runs)
    report("run", statistics.median(per_run), runs * rounds)

    first, last = [], []
    for n in range(threads):
        agent = fresh()
        for turn in range(1, TURNS + 1):
            us, held = timed(agent, f"long-{n}")
            if held != turn * MESSAGES_PER_RUN:
                raise SystemExit(f"turn {turn} holds {held} messages, not {turn * MESSAGES_PER_RUN}")
            if turn == 1:
                first.append(us)
            elif turn == TURNS:
                last.append(us)
    report("turn_1", statistics.median(first), threads)
    report("turn_60", statistics.median(last), threads)


if __name__ == "__main__":
    main()
