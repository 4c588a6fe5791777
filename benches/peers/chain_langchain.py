"""Measures what a model turn costs in LangChain's `create_agent` with one middleware that only passes on.

Runs of one model turn and of eleven on a thread of 20 messages; the model and the tool cost next to nothing. Prints one JSON
line per case, as README.md describes. Setting: PEER_THREADS (threads that are timed).
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
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

TURNS = 11
MESSAGES = 20


class Scripted(BaseChatModel):
    """Calls the tool until the run has had its turns."""

    turns: int

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "Scripted":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        asked = max(n for n, message in enumerate(messages) if isinstance(message, HumanMessage))
        turn = 1 + sum(isinstance(message, AIMessage) for message in messages[asked:])
        if messages[asked].content == "warm" or turn == self.turns:
            reply = AIMessage(content="The order has been sent.")
        else:
            call = {"name": "look_up", "args": {"n": turn}, "id": f"call_{turn}", "type": "tool_call"}
            reply = AIMessage(content="", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])


class PassOn(AgentMiddleware):
    """Wraps the model call and does nothing."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request)


@tool
def look_up(n: int) -> str:
    """Looks up an order."""
    return "sent"


def timed(turns: int) -> float:
    agent = create_agent(
        Scripted(turns=turns),
        [look_up],
        system_prompt="You look up orders.",
        middleware=[PassOn()],
        checkpointer=InMemorySaver(),
    )
    config = {"configurable": {"thread_id": "t"}, "recursion_limit": 100}
    earlier = [
        ("user", f"Question {n}: where is my order, and when will it be here?")
        if n % 2 == 0
        else ("assistant", f"Answer {n}: it was sent on Monday and will be there on Friday.")
        for n in range(MESSAGES)
    ]
    agent.update_state(config, {"messages": earlier})
    agent.invoke({"messages": [("user", "warm")]}, config)
    begin = time.perf_counter()
    messages = agent.invoke({"messages": [("user", "And the other one?")]}, config)["messages"]
    took = (time.perf_counter() - begin) * 1e6
    # No broken run is ever measured as a fast one.
    if len(messages) != MESSAGES + 2 + 2 * turns:
        raise SystemExit(f"the scripted run went wrong: {messages}")
    return took


def main() -> None:
    threads = max(1, int(os.environ.get("PEER_THREADS", 60)))
    timed(TURNS)
    one, many = (statistics.median(timed(turns) for _ in range(threads)) for turns in (1, TURNS))
    version = importlib.metadata.version("langchain")
    for case, us in (("chain_turn", (many - one) / (TURNS - 1)), ("chain_run", one)):
        line = {"peer": "langchain", "version": version, "case": case, "us_per_run": round(us, 2), "samples": threads}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
