"""Computes assembly descriptors from what agents are made of, without the library, and compares.

    python3 recompute.py cases.json

The file is a list of {"inputs": ..., "descriptor": ...}. Every hash, the fingerprint included, is computed from `inputs`
alone: prompt and data texts, tools with description and schema, texts of SKILL.md, middleware, model, policies. Prints what
differs; the exit status is 1 then. Python 3, standard library only.
"""

import hashlib
import json
import sys

CREDENTIAL_PARTS = ("KEY", "SECRET", "TOKEN", "PASS", "CREDENTIAL", "DSN")
CREDENTIAL_NAMES = set(
    "DATABASE_URL DATABASE_URI REDIS_URL MONGODB_URI MONGO_URL AMQP_URL RABBITMQ_URL POSTGRES_URL POSTGRESQL_URL MYSQL_URL "
    "CLICKHOUSE_URL CONNECTION_STRING CONN_STR GH_PAT GITHUB_PAT MYSQL_PWD REDISCLI_AUTH REDIS_AUTH PGSERVICEFILE".split()
)
METADATA = {"name", "display_name", "description", "use", "context_window", "pricing"}
FINGERPRINT = (
    "namespace agent_name effective_model model_parameters thinking_enabled reasoning_effort base_prompt_hash tools "
    "middlewares deferred_tool_names enabled_skills effective_policies"
).split()


def canonical(value):
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value):
    return hashlib.sha256(canonical(value).encode("utf-8")).hexdigest()


def named_like_a_credential(name):
    name = name.upper()
    return name in CREDENTIAL_NAMES or any(part in name for part in CREDENTIAL_PARTS)


def is_credential(name, value):
    """Counts of tokens are settings, whatever the name."""
    if not named_like_a_credential(name):
        return False
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    is_count = (is_number or value is None) and not named_like_a_credential(name.upper().replace("TOKENS", ""))
    return not is_count


def without_credentials(value):
    if isinstance(value, dict):
        return {k: without_credentials(v) for k, v in value.items() if not is_credential(k, v)}
    if isinstance(value, list):
        return [without_credentials(item) for item in value]
    return value


def model_parameters(profile, overrides):
    settings = {"provider": profile.get("use", profile.get("provider"))}
    given = {name: value for name, value in overrides.items() if value is not None}
    for name, value in {**profile, **given}.items():
        if name != "provider" and name not in METADATA:
            settings[name] = value
    return without_credentials(settings)


def tool(given):
    origin = given["origin"]
    kind, server = origin["kind"], origin.get("server")
    return {
        "name": given["name"],
        "description_hash": digest(given["description"]),
        "schema_hash": digest(given["schema"]),
        "source": f"mcp:{server or 'unknown'}" if kind == "mcp" else kind,
        "mcp_server": server,
        "mcp_transport": origin.get("transport"),
    }


def skill(given):
    allowed = given["allowed_tools"]
    return {
        "name": given["name"],
        "description": given["description"],
        "allowed_tools": None if allowed is None else sorted(allowed),
        "content_hash": digest(given["content"]),
        "secrets_autonomous": given["secrets_autonomous"],
        "required_secrets": sorted(f"{one['name']}:{one['optional']}" for one in given["required_secrets"]),
    }


def policies(given, skills):
    allowed = given["allowed_subagents"]
    limits = {
        name: {"max_turns": turns, "timeout_seconds": seconds}
        for name, turns, seconds in given["subagents"]
        if given["subagents_enabled"] and (allowed is None or name in allowed)
    }
    catalog = given["deferred_tools_catalog_hash"]
    limit = given["recursion_limit"]
    return {
        "bootstrap": given["bootstrap"],
        "non_interactive": given["non_interactive"],
        "plan_mode": given["plan_mode"],
        "subagents": {
            "enabled": given["subagents_enabled"],
            "max_concurrent": given["max_concurrent"],
            "max_total": given["max_total"],
            "type_allowlist": sorted(limits),
            "runtime_limits": limits,
        },
        "deferred_tools": {"enabled": catalog is not None, "catalog_hash": catalog},
        "deferred_skills": given["deferred_skills"],
        "recursion_limit": "framework-default" if limit is None else limit,
        "prompt_template_id": given["prompt_template_id"],
        "skill_catalog_hash": digest(sorted(skills, key=lambda one: one["name"])),
    }


def descriptor(given):
    skills = [skill(one) for one in given["skills"]]
    of_middlewares = [one for part in given["middlewares"] for one in part["tools"]]
    made = {
        "namespace": "deerflow",
        "agent_name": given["agent_name"],
        "requested_model": given["requested_model"],
        "effective_model": given["effective_model"],
        "model_parameters": model_parameters(given["profile"], given["overrides"]),
        "thinking_enabled": given["thinking_enabled"],
        "reasoning_effort": given["reasoning_effort"],
        "base_prompt_hash": digest(given["prompt"]),
        "base_data_hash": None if given["data"] is None else digest(given["data"]),
        "tools": [tool(one) for one in given["tools"] + of_middlewares],
        "middlewares": [
            {
                "name": part["name"],
                "module": "fawn::middleware::" + part["name"],
                "policy_parameters": part["policy"],
                "extension": None,
                "hooks": part["hooks"],
            }
            for part in given["middlewares"]
        ],
        "deferred_tool_names": sorted(given["deferred_tool_names"]),
        "enabled_skills": given["enabled_skills"],
        "skills": skills,
        "effective_policies": policies(given["policies"], skills),
        "build": {"package_version": given["package_version"], "image_digest": "unknown", "git_commit": "unknown"},
    }
    made["fingerprint"] = fingerprint(made)
    return made


def fingerprint(made):
    facts = {name: made[name] for name in FINGERPRINT}
    facts["tools"] = sorted(made["tools"], key=lambda one: one["name"])
    facts["middlewares"] = [
        {name: part[name] for name in ("name", "module", "extension", "policy_parameters")} for part in made["middlewares"]
    ]
    facts["deferred_tool_names"] = sorted(made["deferred_tool_names"])
    facts["enabled_skills"] = sorted(made["enabled_skills"])
    if made["base_data_hash"] is not None:
        facts["base_data_hash"] = made["base_data_hash"]
    return digest(facts)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cases = json.load(file)
    wrong = 0
    for number, case in enumerate(cases):
        expected, found = descriptor(case["inputs"]), case["descriptor"]
        for name in sorted(expected.keys() | found.keys()):
            # As text: to Python 1, 1.0 and True are equal.
            sides = [canonical(side[name]) if name in side else "missing" for side in (expected, found)]
            if sides[0] != sides[1]:
                wrong += 1
                print(f"case {number}, {name}:\n  expected {sides[0]}\n  found    {sides[1]}")
    print(f"{len(cases)} descriptors recomputed, {wrong} differences")
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
