"""Compares fawn's message reducer with LangGraph's on fresh random cases; stops at the first difference.

    run.py [PATH/TO/libfawn.so] [--cases N] [--seed S] [--seconds T] [--only I] [--no-exclusions]

The Python that has the packages is the one that setup.sh prints. The library may also be named by FAWN_LIB. Exit code
0 when every case agreed, 1 with the smallest case found that differs, 2 when there is nothing to compare with.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import reference
from cases import Generator
from exclusions import excluded
from fawn import BrokenContract, Fawn, FawnError

# How the reference's failures are told apart: exception class and beginning of its text, and the code that fawn must
# answer then. Failures that are not listed only have to be failures.
CODES = [
    (ValueError, "Must specify non-null arguments", "null_write"),
    (ValueError, "Attempting to delete a message with an ID", "unknown_message_id"),
    (ValueError, "Message dict must contain", "message_incomplete"),
    (ValueError, "Unexpected message type: ", "unknown_role"),
    (NotImplementedError, "", "not_a_message"),
    (json.JSONDecodeError, "", "arguments_syntax"),
]
# Codes whose text is the reference's own, word for word.
SAME_TEXT = {"null_write", "unknown_message_id"}
SHRINK_SECONDS = 20
# Stands for the row of exclusions.py when none of them is heeded.
ANY = "any"


def outcome(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """The call's answer, or what it raised: whatever the reference raises on a hostile value is its refusal."""
    try:
        return call(), None
    except BrokenContract:
        raise
    except Exception as error:
        return None, error


def difference(fawn: Fawn, case: dict[str, Any]) -> str | None:
    """What differs on this case, in words."""
    try:
        if case["kind"] == "convert":
            expected = outcome(lambda: reference.convert(case["messages"]))
            return compare(expected, outcome(lambda: fawn.convert(case["messages"])))
        expected, refused = outcome(lambda: reference.fold(case["existing"], case["updates"]))
        messages, after = expected or (None, [])
        request = {"existing": case["existing"], "updates": case["updates"], "ids": "sequential"}
        got = outcome(lambda: fawn.reduce("messages", request))
        return compare((messages, refused), got) or halves(fawn, case, messages, after)
    except BrokenContract as broken:
        return str(broken)


def halves(fawn: Fawn, case: dict[str, Any], messages: Any, after: list[int]) -> str | None:
    """Folding in two calls, with the first answer fed back as canonical, must read the same."""
    if messages is None or len(after) < 2:
        return None
    cut = len(after) // 2
    first = {"existing": case["existing"], "updates": case["updates"][:cut], "ids": "sequential"}

    def folded() -> Any:
        state = fawn.reduce("messages", first)
        ids = {"sequential_from": after[cut - 1]}
        rest = {"existing": state, "updates": case["updates"][cut:], "form": "canonical", "ids": ids}
        return fawn.reduce("messages", rest)

    found = compare((messages, None), outcome(folded))
    return found and f"folded in two calls, cut after update {cut}: {found}"


def compare(expected: tuple[Any, Exception | None], got: tuple[Any, Exception | None]) -> str | None:
    (value, refused), (answer, failed) = expected, got
    if failed is not None and not isinstance(failed, FawnError):
        raise BrokenContract(f"the answer is no JSON: {failed}")
    if refused is not None:
        if failed is None:
            return f"the reference refuses ({describe(refused)}), fawn answers {short(answer)}"
        return compare_errors(refused, failed)
    if failed is not None:
        return f"the reference answers {short(value)}, fawn refuses ({failed})"
    return compare_messages(value, answer)


def compare_errors(refused: Exception, failed: FawnError) -> str | None:
    for kind, beginning, code in CODES:
        if type(refused) is kind and str(refused).startswith(beginning):
            if failed.code != code:
                return f"the reference says {describe(refused)}, which is {code}; fawn answers {failed}"
            if code in SAME_TEXT and failed.message != str(refused):
                return f"texts differ: {str(refused)!r}, fawn {failed.message!r}"
    return None


def compare_messages(value: list[Any], answer: Any) -> str | None:
    found = differs(value, answer, "")
    if found:
        return found
    for at, (left, right) in enumerate(zip(value, answer, strict=True)):
        if not isinstance(left, dict):
            continue
        if list(left) != list(right):
            return f"order of members at /{at}: {list(left)}, fawn {list(right)}"
        if left.get("type") != "ai":
            continue
        for member in ("tool_calls", "invalid_tool_calls"):
            entries = left[member] if isinstance(left.get(member), list) else []
            for n, entry in enumerate(entries):
                if isinstance(entry, dict) and list(entry) != list(right[member][n]):
                    return f"order of members at /{at}/{member}/{n}: {list(entry)}, fawn {list(right[member][n])}"
    return None


def differs(left: Any, right: Any, at: str) -> str | None:
    """Strict equality of JSON values: 1, 1.0 and true are three values, and so are 0.0 and -0.0."""
    if type(left) is not type(right):
        return f"at {at or '/'}: {short(left)}, fawn {short(right)}"
    if isinstance(left, dict):
        if left.keys() != right.keys():
            return f"members at {at or '/'}: {sorted(left)}, fawn {sorted(right)}"
        return next((found for key in left if (found := differs(left[key], right[key], f"{at}/{key}"))), None)
    if isinstance(left, list):
        if len(left) != len(right):
            return f"at {at or '/'}: {len(left)} elements, fawn {len(right)}"
        return next((found for n in range(len(left)) if (found := differs(left[n], right[n], f"{at}/{n}"))), None)
    return None if repr(left) == repr(right) else f"at {at or '/'}: {short(left)}, fawn {short(right)}"


def shrink(fails: Callable[[dict[str, Any]], bool], case: dict[str, Any]) -> dict[str, Any]:
    """The smallest case found by taking parts away, one at a time, for as long as the rest still fails."""
    deadline, again = time.monotonic() + SHRINK_SECONDS, True
    while again:
        again = False
        for smaller in reductions(case):
            if time.monotonic() > deadline:
                return case
            if fails(smaller):
                case, again = smaller, True
                break
    return case


def reductions(case: dict[str, Any]) -> Any:
    for member in ("updates", "messages", "existing"):
        if member in case:
            for value in smaller_values(case[member]):
                if member == "existing" or isinstance(value, list):
                    yield {**case, member: value}


def smaller_values(value: Any) -> Any:
    if isinstance(value, list):
        for n in range(len(value)):
            yield value[:n] + value[n + 1 :]
        for n, item in enumerate(value):
            for smaller in smaller_values(item):
                yield [*value[:n], smaller, *value[n + 1 :]]
    elif isinstance(value, dict):
        for key in value:
            yield {k: v for k, v in value.items() if k != key}
        for key, item in value.items():
            for smaller in smaller_values(item):
                yield {**value, key: smaller}
    elif isinstance(value, str) and value:
        yield ""
        if len(value) > 1:
            yield value[: len(value) // 2]
            yield value[1:]


def describe(error: Exception) -> str:
    return f"{type(error).__name__}: {short(str(error))}"


def short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 400 else text[:400] + " …"


def report(fawn: Fawn, case: dict[str, Any], found: str, reason: str | None, index: int, seed: int) -> None:
    """`reason`: the row of exclusions.py that the case is under; the smaller cases stay under it, or under none."""

    def fault(smaller: dict[str, Any]) -> str | None:
        if excluded(smaller) != reason and reason != ANY:
            return None
        return difference(fawn, smaller) if reason in (None, ANY) else survives(fawn, smaller)

    smallest = shrink(lambda smaller: fault(smaller) is not None, case)
    print(f"case {index} of seed {seed} differs: {found}")
    print(f"smallest case found: {json.dumps(smallest, ensure_ascii=False)}")
    print(f"there: {fault(smallest)}")
    print(f"again with: --seed {seed} --only {index}{' --no-exclusions' if reason == ANY else ''}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lib", metavar="library", nargs="?", default=os.environ.get("FAWN_LIB"))
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=300, help="stop after this time with what was compared")
    parser.add_argument("--only", type=int, default=None, help="one case, by its number")
    parser.add_argument("--no-exclusions", action="store_true", help="compare the cases of exclusions.py too")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    if not args.lib:
        print("no library: give its path, or set FAWN_LIB", file=sys.stderr)
        return 2
    # Lone surrogates, which the reference lets through, cannot be printed as they are.
    sys.stdout.reconfigure(errors="backslashreplace")
    seed = random.SystemRandom().randrange(2**32) if args.seed is None else args.seed
    # The library is loaded in a child only, so that a crash of it leaves someone to say in which case it was.
    context = multiprocessing.get_context("fork")
    index = context.Value("q", 0, lock=False)
    child = context.Process(target=lambda: sys.exit(compare_cases(args, seed, index)))
    child.start()
    child.join()
    if child.exitcode is not None and child.exitcode < 0:
        print(f"case {index.value} of seed {seed} ended the process by signal {-child.exitcode}")
        print(json.dumps(Generator(seed, index.value).case(), ensure_ascii=False))
        return 1
    return child.exitcode or 0


def compare_cases(args: argparse.Namespace, seed: int, at: Any) -> int:
    """Compares until enough cases agreed, one differs, or the time is up. `at` holds the number of the case at work."""
    fawn = Fawn(args.lib)
    reference.check()
    print(f"fawn {fawn.version()} against LangGraph, seed {seed}", flush=True)

    deadline = time.monotonic() + args.seconds
    passed: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    first = 0 if args.only is None else args.only
    for index in itertools.count(first) if args.only is None else [first]:
        if passed.total() >= args.cases or time.monotonic() > deadline:
            break
        at.value = index
        case = Generator(seed, index).case()
        reason = ANY if args.no_exclusions else excluded(case)
        compared = reason in (None, ANY)
        found = difference(fawn, case) if compared else survives(fawn, case)
        if found:
            report(fawn, case, found, reason, index, seed)
            print(f"{passed.total()} passed, 1 failed")
            return 1
        if compared:
            passed[case["kind"]] += 1
        else:
            left_out[reason] += 1
    for name, count in sorted(left_out.items()):
        print(f"left out, only called: {count} x {name}")
    if args.only is None and passed.total() < args.cases:
        print(f"stopped by the clock after {args.seconds:g} s, before {args.cases} cases")
    print("compared: " + ", ".join(f"{passed[kind]} {kind}" for kind in ("convert", "fold")))
    print(f"{passed.total()} passed, 0 failed")
    return 0


def survives(fawn: Fawn, case: dict[str, Any]) -> str | None:
    """A case whose outcome is not compared must still get an answer or an error object."""

    def call() -> Any:
        if case["kind"] == "convert":
            return fawn.convert(case["messages"])
        return fawn.reduce("messages", {"existing": case["existing"], "updates": case["updates"]})

    try:
        failed = outcome(call)[1]
    except BrokenContract as broken:
        return str(broken)
    return None if failed is None or isinstance(failed, FawnError) else f"the answer is no JSON: {failed}"


if __name__ == "__main__":
    sys.exit(main())
