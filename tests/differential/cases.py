"""Random cases of the `messages` channel. Case `n` of seed `s` is always the same, whatever ran before it.

A case is `{"kind": "fold", "existing": …, "updates": […]}` or `{"kind": "convert", "messages": […]}`. Half of the cases
are tame, as a well-behaved program writes them, and run into depth; the other half mix in values that nobody should
send, most of which end in an error early.
"""

import random
from typing import Any

REMOVE_ALL = "__remove_all__"
IDS = ["a", "b", "c", "d"]
ODD_IDS = [
    "",
    " ",
    "ö",
    "😀",
    "e\u0301",
    "1",
    "it's",
    'q"\\\n',
    "x\u0000y",
    1,
    0,
    -1,
    2**53,
    2**63,
    1.0,
    1.5,
    1e16,
    -0.0,
    "1.0",
    REMOVE_ALL,
]
ALLOCATED = [f"00000000-0000-4000-8000-{n:012x}" for n in (1, 2, 3, 10)]
TEXTS = [
    "hi",
    "",
    "a b",
    "z\n",
    "😀👩‍👩‍👧",
    "日本語",
    "e\u0301",
    "\u2028\u2029",
    "\u0000\u001f",
    'q"uo\\te',
    "</s>",
    "مرحبا",
    "\ufeffx",
    "{}",
    "null",
    "x" * 300,
]
VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    1.0,
    1.5,
    -0.0,
    1e300,
    5e-324,
    1e16,
    2**53 + 1,
    2**63 - 1,
    2**64 - 1,
    -(2**63),
    "",
    "s",
    "ü",
    [],
    {},
    [1, [2, {"k": None}]],
    {"k": {"n": [1, 2.5, True]}},
]
HOSTILE = [
    None,
    True,
    False,
    0,
    5,
    -1.5,
    [],
    {},
    [[]],
    ["user"],
    ["user", "a", "b"],
    [None, "x"],
    [5, "x"],
    [["user"], "x"],
    ["user", None],
    ["user", 5],
    ["tool", "x"],
    ["remove", "a"],
    ["function", "x"],
    {"content": "x"},
    {"role": "user"},
    {"data": {"content": "x"}, "type": "human"},
    {"role": None, "content": "x"},
    {"role": ["user"], "content": "x"},
]
HUMAN, AI, SYSTEM = ["user", "human"], ["assistant", "ai"], ["system", "developer"]
UNKNOWN_ROLES = [
    "User",
    "robot",
    "chat",
    "AIMessageChunk",
    "HumanMessageChunk",
    "constructor",
    "",
    "AI",
    "tool ",
    5,
    True,
    None,
]
CLASSES = ["HumanMessage", "AIMessage", "SystemMessage", "FunctionMessage", "ToolMessage"]
ARGUMENTS = [
    '{"a": 1}',
    "{}",
    "",
    "null",
    "[]",
    "[1]",
    '"s"',
    "5",
    "true",
    "0",
    '{"a": "\\u00e9"}',
    '{"a":',
    "{'a': 1}",
    '{"a": 1} x',
    ' {"a": 1.50} ',
    '{"a": "\n"}',
    '{"a":1,"a":2}',
    '{"n": {"m": [1, 2.5, null]}}',
    "{a: 1}",
    '{"a": 1e2}',
    '{"big": 18446744073709551615}',
    '{"a": "\\ud83d\\ude00"}',
    "NaN",
    '{"a": NaN}',
    '{"a": 1e400}',
    '{"a": "\\ud800"}',
]


class Generator:
    def __init__(self, seed: int, index: int) -> None:
        self.rng = random.Random(f"{seed}/{index}")
        self.tame = self.rng.random() < 0.5
        # Ids that are probably in the thread now, so that most updates and removals of tame cases hit.
        self.live: list[Any] = []

    def case(self) -> dict[str, Any]:
        if self.rng.random() < 0.3:
            return {"kind": "convert", "messages": [self.message() for _ in range(self.count(5))]}
        existing = self.existing()
        updates = [self.update() for _ in range(self.count(6))]
        return {"kind": "fold", "existing": existing, "updates": updates}

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def wild(self, probability: float) -> bool:
        return not self.tame and self.chance(probability)

    def pick(self, options: list[Any]) -> Any:
        return self.rng.choice(options)

    def count(self, most: int) -> int:
        return min(self.rng.randint(0, most), self.rng.randint(0, most) + 1)

    def existing(self) -> Any:
        if self.wild(0.1):
            return self.pick(
                [None, "x", "", {}, 0, False, {"role": "user", "content": "x"}, {"role": "robot", "content": ""}]
            )
        return [self.message() for _ in range(self.count(6))]

    def update(self) -> Any:
        if self.wild(0.06):
            return None
        kind = self.rng.random()
        if kind < 0.12:
            return self.pick(TEXTS)
        if kind < 0.24:
            return self.message()
        messages = [self.removal() if self.chance(0.2) else self.message() for _ in range(self.count(5))]
        if self.chance(0.06):
            messages.insert(self.rng.randint(0, len(messages)), self.removal(REMOVE_ALL))
            self.live = []
        if messages and self.chance(0.05):
            messages.append(self.pick(messages))
        return messages

    def removal(self, ident: Any = None) -> Any:
        if ident is None:
            if self.live and not self.wild(0.3):
                ident = self.pick(self.live)
            elif self.tame:
                return self.message()
            else:
                ident = self.pick(IDS + ODD_IDS + ALLOCATED + [None, True])
        form = self.rng.random()
        if form < 0.6:
            message = {"role": "remove", "content": self.pick(["", "", "x", None]), "id": ident}
        elif form < 0.85:
            message = {"type": "remove", "content": "", "id": ident}
        else:
            return self.envelope("RemoveMessage", {"content": "", "type": "remove", "id": ident})
        if self.wild(0.2):
            message[self.pick(["name", "tool_call_id", "tool_calls", "response_metadata", "foo"])] = self.pick(VALUES)
        if self.wild(0.03):
            del message[self.pick(["content", "id"])]
        return message

    def message(self) -> Any:
        if self.wild(0.06):
            return self.pick(HOSTILE)
        form = self.rng.random()
        if form < 0.1:
            return self.pick(TEXTS)
        if form < 0.2:
            return [self.pick(HUMAN + AI + SYSTEM), self.content()]
        role = self.role()
        message = self.members(role)
        if form < 0.3 and role not in SYSTEM[1:]:
            classes = {"user": 0, "human": 0, "assistant": 1, "ai": 1, "system": 2, "function": 3, "tool": 4}
            name = (
                CLASSES[classes.get(role, 0)]
                if role in classes or self.tame
                else self.pick(["ChatMessage", "Nothing", "BaseMessage", 5])
            )
            if self.chance(0.2) and isinstance(name, str):
                name += "Chunk"
            if self.wild(0.1):
                message[self.pick(["type", "role"])] = self.pick(HUMAN + AI + ["AIMessageChunk", "robot"])
            return self.envelope(name, message)
        if form < 0.4:
            message = self.dumped(role, message)
        spelling = self.rng.random()
        if spelling < 0.65:
            message = {"role": role, **message}
        elif spelling < 0.95:
            message = {"type": role, **message}
        else:
            message = {"role": role, "type": self.pick(HUMAN + AI + ["robot", None]), **message}
        if self.wild(0.05):
            message.pop(self.pick(list(message)))
        if self.chance(0.1):
            keys = list(message)
            self.rng.shuffle(keys)
            message = {key: message[key] for key in keys}
        return message

    def role(self) -> Any:
        if self.wild(0.06):
            return self.pick(UNKNOWN_ROLES)
        return self.rng.choices(
            [self.pick(HUMAN), self.pick(AI), self.pick(SYSTEM), "tool", "function"], [30, 40, 10, 15, 5]
        )[0]

    def envelope(self, name: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
        envelope = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}
        if self.wild(0.12):
            key, values = self.pick(
                [
                    ("lc", [0, 2, None, True, 1.0]),
                    ("type", ["not_implemented", None]),
                    ("id", [[], None, ["AIMessage"], [5]]),
                    ("kwargs", [None, [], dict(envelope), {}]),
                ]
            )
            envelope[key] = self.pick(values)
        return envelope

    def content(self) -> Any:
        if self.wild(0.08):
            return self.pick(VALUES)
        if self.chance(0.7):
            return self.pick(TEXTS)
        blocks = [
            {"type": "text", "text": self.pick(TEXTS)},
            self.pick(TEXTS),
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
            {"type": "text", "text": "c", "cache_control": {"type": "ephemeral"}},
            {"k": self.pick(VALUES)},
        ]
        if self.wild(0.1):
            blocks.append(self.pick(VALUES))
        return [self.pick(blocks) for _ in range(self.count(3))]

    def members(self, role: Any) -> dict[str, Any]:
        message: dict[str, Any] = {"content": self.content()}
        if self.chance(0.6):
            ident = self.pick(IDS + ALLOCATED) if self.chance(0.85) else self.pick(ODD_IDS)
            message["id"] = ident
            self.live.append(ident)
        elif self.wild(0.1):
            message["id"] = self.pick([None, True, [], {}])
        if role == "tool" and not self.wild(0.05):
            message["tool_call_id"] = (
                self.pick(["c1", "c2", "", "ü"]) if self.chance(0.9) else self.pick([5, 1.5, 2**63])
            )
            if self.chance(0.3):
                message["status"] = (
                    self.pick(["success", "error", None]) if not self.wild(0.2) else self.pick(["weird", 1])
                )
            if self.chance(0.2):
                message["artifact"] = self.pick(VALUES)
        if role == "function" and not self.wild(0.1):
            message["name"] = "f"
        elif self.chance(0.15):
            message["name"] = self.pick(["n", "", "ü", None]) if not self.wild(0.2) else self.pick(VALUES)
        if role in AI and self.chance(0.5) or self.wild(0.05):
            message["tool_calls"] = self.tool_calls()
        if self.chance(0.1):
            message["additional_kwargs"] = self.additional_kwargs()
        if self.chance(0.1):
            message["response_metadata"] = (
                self.pick([{}, {"model": "m"}, {"usage": {"n": 1}}, None]) if not self.wild(0.2) else self.pick(VALUES)
            )
        for _ in range(2):
            if self.chance(0.1):
                message[
                    self.pick(
                        [
                            "foo",
                            "usage_metadata",
                            "invalid_tool_calls",
                            "refusal",
                            "example",
                            "kwargs",
                            "tool_call_chunks",
                            "ü",
                            "",
                            "status",
                            "artifact",
                        ]
                    )
                ] = self.pick(VALUES)
        if self.wild(0.02):
            message[self.pick(["message_type", "tool_call_id", "lc"])] = self.pick(VALUES)
        return message

    def additional_kwargs(self) -> Any:
        if self.wild(0.2):
            return self.pick(VALUES + [[["k", 1]], "ab"])
        kwargs: dict[str, Any] = {self.pick(["k", "foo", "reasoning_content", "example"]): self.pick(VALUES)}
        if self.chance(0.5):
            kwargs["tool_calls"] = [self.openai_call(True) for _ in range(self.count(3))]
            if self.wild(0.2):
                kwargs["tool_calls"] = self.pick(VALUES)
        if self.chance(0.1):
            kwargs[self.pick(["artifact", "status"])] = self.pick(["error", "success", 1])
        return kwargs

    def tool_calls(self) -> Any:
        if self.wild(0.05):
            return self.pick(VALUES)
        openai = self.chance(0.5)
        return [self.openai_call(False) if openai else self.langchain_call() for _ in range(self.count(3))]

    def openai_call(self, anything: bool) -> Any:
        """`anything`: where malformed arguments are kept instead of refused."""
        arguments = (
            self.pick(ARGUMENTS)
            if anything or self.wild(0.3)
            else self.pick(['{"a": 1}', "{}", '{"q": "ü", "n": [1.5, null]}'])
        )
        call: dict[str, Any] = {
            "id": self.pick(["c1", "c2", None, ""]),
            "type": "function",
            "function": {"name": self.pick(["f", "task", "ü"]), "arguments": arguments},
        }
        if self.chance(0.1):
            call["index"] = 0
        if self.wild(0.1):
            target = self.pick([call, call["function"]])
            key = self.pick(list(target))
            target.pop(key) if self.chance(0.5) else target.update({key: self.pick(VALUES)})
        return call

    def langchain_call(self) -> Any:
        if self.wild(0.04):
            return self.pick(VALUES)
        call: dict[str, Any] = {
            "name": self.pick(["f", "task", ""]),
            "args": self.pick([{}, {"a": 1}, {"q": "ü", "n": [1.5, None]}]),
            "id": self.pick(["c1", "c2", None]),
        }
        if self.chance(0.6):
            call["type"] = self.pick(["tool_call", "function", "x"])
        if self.wild(0.12):
            key = self.pick(["name", "args", "id", "extras", "zzz"])
            call.pop(key, None) if self.chance(0.5) else call.update({key: self.pick(VALUES)})
        return call

    def dumped(self, role: Any, message: dict[str, Any]) -> dict[str, Any]:
        """The message with all members that LangChain writes for its class, as a client sends a stored thread back."""
        dumped = {
            "content": message.pop("content"),
            "additional_kwargs": {},
            "response_metadata": {},
            "name": None,
            "id": None,
        }
        if role in AI:
            dumped |= {
                "tool_calls": [],
                "invalid_tool_calls": [],
                "usage_metadata": self.pick([None, {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}]),
            }
        if role == "tool":
            dumped |= {"artifact": None, "status": "success"}
        return dumped | message
