"""Writes the requests of the fold comparison, the same for every peer: `data.py DIRECTORY`.

`append.json`   100,000 messages (200 bytes of text each, 30 MB of JSON) and one write of one message
`writes.json`   10,000 messages and 1,000 writes of one message; every second one replaces an old message

Each file is a request of `fawn_reduce`; peers read `existing` and `updates`. Messages are plain user texts in canonical
form, the kind that costs the peers least. `*.canonical.json` say so with `"form"`, which spares fawn the coercion.
"""

import json
import pathlib
import random
import sys

TEXT_BYTES = 200
# With an escape and a letter beyond ASCII, as texts of people have them.
WORDS = 'the order was shipped on Monday\nbut café never answered, and so "nobody" knows where it is now'.split(" ")


def text(rng: random.Random) -> str:
    words = ""
    while len(words.encode()) < TEXT_BYTES:
        words += rng.choice(WORDS) + " "
    return words.encode()[:TEXT_BYTES].decode(errors="ignore").ljust(TEXT_BYTES - 1, ".")


def message(rng: random.Random, ident: str) -> dict[str, object]:
    return {
        "content": text(rng),
        "additional_kwargs": {},
        "response_metadata": {},
        "type": "human",
        "name": None,
        "id": ident,
    }


def write(path: pathlib.Path, existing: list[object], updates: list[object]) -> None:
    for suffix, extra in (("", {}), (".canonical", {"form": "canonical"})):
        request = {**extra, "existing": existing, "updates": updates}
        text = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
        path.with_name(f"{path.name}{suffix}.json").write_text(text, encoding="utf-8")


def main() -> None:
    directory, rng = pathlib.Path(sys.argv[1]), random.Random(1)
    directory.mkdir(parents=True, exist_ok=True)
    many = [message(rng, f"m{n}") for n in range(100_000)]
    write(directory / "append", many, [[message(rng, "new")]])
    updates = [[message(rng, f"m{rng.randrange(10_000)}" if n % 2 else f"new{n}")] for n in range(1000)]
    write(directory / "writes", many[:10_000], updates)


if __name__ == "__main__":
    main()
