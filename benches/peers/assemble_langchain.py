"""Measures what LangChain's `create_agent` takes to build an agent of 50 tools, and of one tool.

Prints one JSON line per case, as README.md describes. Settings: PEER_BUILDS (builds per case).
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
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool

BUILDS = int(os.environ.get("PEER_BUILDS", "200"))


class Silent(BaseChatModel):
    """Answers nothing of note: only the building is measured."""

    @property
    def _llm_type(self) -> str:
        return "silent"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "Silent":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content="ok"))])


def lookup(customer: str, limit: int = 10) -> str:
    """Looks up orders of a customer and answers with their states, newest first."""
    return customer * limit


def measure(case: str, count: int) -> None:
    # The tools are made once, which is in the peer's favour: fawn's come from the configuration as well.
    tools = [StructuredTool.from_function(lookup, name=f"tool_{number}") for number in range(count)]
    model = Silent()
    samples = []
    for _ in range(BUILDS):
        begin = time.perf_counter()
        create_agent(model, tools, system_prompt="You look things up.")
        samples.append((time.perf_counter() - begin) * 1e6)
    version = importlib.metadata.version("langchain")
    line = {
        "peer": "langchain",
        "version": version,
        "case": case,
        "us_per_run": round(statistics.median(samples), 2),
        "samples": len(samples),
    }
    print(json.dumps(line), flush=True)


measure("assemble_warm", 50)
measure("assemble_one_tool", 1)
