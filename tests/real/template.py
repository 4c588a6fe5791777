"""Writes the chat template of a model with two changes that let so small a model call tools.

It writes a call as bare JSON, without the tags that its own template asks for, and the server then takes the call for text: so
the tags go. And after a tool's answer it needs to be told to put it into words.
"""

import sys

from gguf import GGUFReader

EDITS = [
    ('within <tool_call></tool_call> XML tags:\\n<tool_call>\\n{\\"name\\"', ':\\n{\\"name\\"'),
    ('}\\n</tool_call><|im_end|>\\n" }}', '}<|im_end|>\\n" }}'),
    ("'\\n<tool_call>\\n{\"name\": \"'", "'\\n{\"name\": \"'"),
    ("'}\\n</tool_call>'", "'}'"),
    (
        "'\\n</tool_response>'",
        "'\\n</tool_response>\\nNow tell me the answer in one English sentence.'",
    ),
]

template = GGUFReader(sys.argv[1]).fields["tokenizer.chat_template"].contents()
for old, new in EDITS:
    if old not in template:
        sys.exit(f"{sys.argv[1]}: the template does not hold {old!r}")
    template = template.replace(old, new)
with open(sys.argv[2], "w", encoding="utf-8") as out:
    out.write(template)
