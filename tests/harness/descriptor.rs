//! Descriptors: computed anew by a script of another language, and held to what may and may not change a fingerprint.

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use fawn::agent::descriptor::{BuildInputs, DescriptorInputs, PolicyInputs, describe};
use fawn::agent::descriptor_diff::diff;
use fawn::agent::model_parameters::model_parameters;
use fawn::middleware::{Hooks, Middleware};
use fawn::ports::tool::{
    DynTool, McpOrigin, Tool, ToolInvocation, ToolOrigin, ToolOutcome, ToolSpec,
};
use fawn::protocol::canonical_json::{canonical_json, text_hash};
use fawn::protocol::descriptor::{AssemblyDescriptor, LEAD_TEMPLATE, RuntimeLimits};
use fawn::protocol::descriptor_diff::DescriptorChangeKind;
use fawn::protocol::trust::{OperatorText, SourcedText, SystemText};
use fawn::skills::{AllowedTools, Category, RequiredSecret, Skill};
use serde_json::{Map, Value, json};

use crate::support::random::Random;

/// A tool that is only described.
struct Described {
    spec: ToolSpec,
    origin: ToolOrigin,
}

impl Tool for Described {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn origin(&self) -> &ToolOrigin {
        &self.origin
    }
    async fn call(&self, _: ToolInvocation) -> ToolOutcome {
        ToolOutcome::Failed("not called".to_owned())
    }
}

/// A middleware that is only described.
struct Part {
    name: String,
    policy: Map<String, Value>,
    tools: Vec<Arc<dyn DynTool>>,
}

impl Middleware for Part {
    fn name(&self) -> &str {
        &self.name
    }
    fn hooks(&self) -> Hooks {
        Hooks {
            before_model: true,
            wrap_tool_call: true,
            ..Hooks::default()
        }
    }
    fn policy(&self) -> Map<String, Value> {
        self.policy.clone()
    }
    fn tools(&self) -> &[Arc<dyn DynTool>] {
        &self.tools
    }
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(text).collect()
}

fn optional_text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn operator(text: &str) -> OperatorText {
    OperatorText::from_operator_directory(text)
}

fn tool(given: &Value) -> Arc<dyn DynTool> {
    let origin = match given["origin"]["kind"].as_str().unwrap() {
        "skill" => ToolOrigin::Skill,
        "host" => ToolOrigin::Host,
        "mcp" => ToolOrigin::Mcp(McpOrigin {
            server: optional_text(&given["origin"]["server"]),
            transport: optional_text(&given["origin"]["transport"]),
            routing: None,
        }),
        _ => ToolOrigin::Builtin,
    };
    Arc::new(Described {
        spec: ToolSpec {
            name: text(&given["name"]),
            description: text(&given["description"]),
            parameters: given["schema"].clone().into(),
        },
        origin,
    })
}

fn tools(given: &Value) -> Vec<Arc<dyn DynTool>> {
    given.as_array().unwrap().iter().map(tool).collect()
}

fn skill(given: &Value) -> Skill {
    let sourced = |name: &str| SourcedText::Operator(operator(&text(&given[name])));
    Skill {
        name: sourced("name"),
        description: sourced("description"),
        category: Category::Public,
        allowed_tools: match &given["allowed_tools"] {
            Value::Null => AllowedTools::Undeclared,
            list => AllowedTools::Only(texts(list)),
        },
        required_secrets: given["required_secrets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| RequiredSecret {
                name: text(&one["name"]),
                optional: one["optional"].as_bool().unwrap(),
            })
            .collect(),
        secrets_autonomous: given["secrets_autonomous"].as_bool().unwrap(),
        location: sourced("name"),
        content: text(&given["content"]).into(),
        enabled: true,
    }
}

/// The descriptor of an agent that is made of what `given` says; see `tests/descriptor/recompute.py` for the members.
fn described(given: &Value) -> AssemblyDescriptor {
    let bound = tools(&given["tools"]);
    let parts = given["middlewares"].as_array().unwrap().iter();
    let middlewares: Vec<Arc<dyn Middleware>> = parts
        .map(|part| {
            Arc::new(Part {
                name: text(&part["name"]),
                policy: object(&part["policy"]),
                tools: tools(&part["tools"]),
            }) as Arc<dyn Middleware>
        })
        .collect();
    let skills: Vec<Skill> = given["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(skill)
        .collect();
    let skills: Vec<&Skill> = skills.iter().collect();
    let parameters = model_parameters(&object(&given["profile"]), &object(&given["overrides"]));
    let prompt = SystemText::from(&operator(&text(&given["prompt"])));
    let deferred = texts(&given["deferred_tool_names"]);
    let enabled = texts(&given["enabled_skills"]);
    let policies = &given["policies"];
    let number = |value: &Value| value.as_u64().unwrap();
    let subagents: Vec<(&str, RuntimeLimits)> = policies["subagents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let limits = RuntimeLimits {
                max_turns: number(&one[1]),
                timeout_seconds: number(&one[2]),
            };
            (one[0].as_str().unwrap(), limits)
        })
        .collect();
    let allowed = policies["allowed_subagents"].as_array();
    let allowed: Option<Vec<String>> = allowed.map(|list| list.iter().map(text).collect());
    let deferred: Vec<&str> = deferred.iter().map(String::as_str).collect();
    let enabled: Vec<&str> = enabled.iter().map(String::as_str).collect();
    let inputs = DescriptorInputs {
        agent_name: given["agent_name"].as_str().unwrap(),
        requested_model: given["requested_model"].as_str(),
        effective_model: given["effective_model"].as_str().unwrap(),
        model_parameters: &parameters,
        thinking_enabled: given["thinking_enabled"].as_bool().unwrap(),
        reasoning_effort: &given["reasoning_effort"],
        prompt: Some(&prompt),
        data: given["data"].as_str(),
        tools: &bound,
        middlewares: &middlewares,
        deferred_tool_names: &deferred,
        skills: &skills,
        enabled_skills: &enabled,
        policies: PolicyInputs {
            bootstrap: policies["bootstrap"].as_bool().unwrap(),
            non_interactive: policies["non_interactive"].as_bool().unwrap(),
            plan_mode: &policies["plan_mode"],
            subagents_enabled: policies["subagents_enabled"].as_bool().unwrap(),
            max_concurrent_subagents: number(&policies["max_concurrent"]),
            max_total_subagents: number(&policies["max_total"]),
            subagents: &subagents,
            allowed_subagents: allowed.as_deref(),
            deferred_tools_catalog_hash: policies["deferred_tools_catalog_hash"].as_str(),
            deferred_skills: policies["deferred_skills"].as_bool().unwrap(),
            recursion_limit: policies["recursion_limit"].as_u64(),
            prompt_template_id: policies["prompt_template_id"].as_str().unwrap(),
        },
        build: BuildInputs::default(),
    };
    describe(&inputs)
}
/// Random agents.
struct Agents(Random);

impl Agents {
    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.0.below(from.len() as u64);
        &from[usize::try_from(at).unwrap()]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    fn text(&mut self) -> String {
        const PIECES: &[&str] = &[
            "a",
            "Z",
            "0",
            " ",
            "\"",
            "\\",
            "/",
            "\n",
            "\r",
            "\t",
            "\u{8}",
            "\u{c}",
            "\u{0}",
            "\u{1f}",
            "\u{7f}",
            "\u{80}",
            "é",
            "\u{301}",
            "ß",
            "日本",
            "\u{2028}",
            "\u{2029}",
            "\u{feff}",
            "\u{ffff}",
            "😀",
            "\u{10ffff}",
            "\\u0041",
            "&lt;",
            "</x>",
            "word ",
        ];
        let long = self.chance(3);
        let length = self.0.below(if long { 3000 } else { 12 });
        (0..length).map(|_| *self.pick(PIECES)).collect()
    }

    fn number(&mut self) -> Value {
        const FLOATS: &[f64] = &[
            1e-5,
            1e16,
            0.1,
            -0.0,
            0.0,
            5e-324,
            1.0,
            1e15,
            9_999_999_999_999_998.0,
            1e-4,
            9.999e-5,
            1.5e-7,
            1e22,
            1e100,
            f64::MAX,
            f64::MIN_POSITIVE,
            0.30000000000000004,
            123_456_789.125,
            -2.5,
            2e-308,
        ];
        match self.0.below(6) {
            0 | 1 => (*self.pick(FLOATS)).into(),
            // Any double that is one.
            2 | 3 => {
                let float = f64::from_bits(self.0.next());
                if float.is_finite() {
                    float.into()
                } else {
                    7.into()
                }
            }
            4 => self.0.next().into(),
            _ => (self.0.next().cast_signed() >> self.0.below(60)).into(),
        }
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.0.below(if depth == 0 { 5 } else { 8 }) {
            0 => Value::Null,
            1 => self.chance(50).into(),
            2 => self.number(),
            3 | 4 => self.text().into(),
            5 => self.list(3, |all| all.value(depth - 1)),
            _ => self.object(depth - 1),
        }
    }

    fn object(&mut self, depth: u64) -> Value {
        let count = self.0.below(6);
        let members = (0..count).map(|_| (self.text(), self.value(depth)));
        Value::Object(members.collect())
    }

    fn list(&mut self, most: u64, mut item: impl FnMut(&mut Self) -> Value) -> Value {
        let count = self.0.below(most + 1);
        (0..count).map(|_| item(self)).collect()
    }

    /// Names, now and then odd ones; distinct.
    fn names(&mut self, prefix: &str, most: u64) -> Vec<String> {
        let count = self.0.below(most + 1);
        let mut names: Vec<String> = (0..count)
            .map(|n| match self.chance(20) {
                true => format!("{}{n}", self.text()),
                false => format!("{prefix}{}", n * 7 % 10),
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        // Some order that is not the sorted one.
        for at in (1..names.len()).rev() {
            let other = usize::try_from(self.0.below(at as u64 + 1)).unwrap();
            names.swap(at, other);
        }
        names
    }

    fn name_list(&mut self, prefix: &str, most: u64) -> Value {
        self.names(prefix, most).into()
    }

    fn maybe(&mut self, value: impl FnOnce(&mut Self) -> Value) -> Value {
        if self.chance(40) {
            Value::Null
        } else {
            value(self)
        }
    }

    fn settings(&mut self) -> Value {
        const NAMES: &[&str] = &[
            "temperature",
            "max_tokens",
            "max_completion_tokens",
            "api_key",
            "top_p",
            "base_url",
            "password",
            "use",
            "provider",
            "pricing",
            "display_name",
            "extra_body",
            "auth_token",
            "database_url",
            "Größe",
        ];
        let count = self.0.below(10);
        let mut settings = Map::new();
        for _ in 0..count {
            let name = *self.pick(NAMES);
            let value = match name {
                "use" | "provider" => self.text().into(),
                "max_tokens" if self.chance(80) => self.number(),
                _ => self.value(3),
            };
            settings.insert(name.to_owned(), value);
        }
        settings.into()
    }

    fn tool(&mut self, name: String) -> Value {
        let origin = match self.0.below(5) {
            0 => json!({"kind": "builtin"}),
            1 => json!({"kind": "skill"}),
            2 => json!({"kind": "host"}),
            3 => json!({"kind": "mcp", "server": null, "transport": null}),
            _ => {
                json!({"kind": "mcp", "server": self.text(), "transport": self.maybe(|all| all.text().into())})
            }
        };
        json!({"name": name, "description": self.text(), "schema": self.object(4), "origin": origin})
    }

    fn tools(&mut self, prefix: &str, most: u64) -> Value {
        let names = self.names(prefix, most);
        names.into_iter().map(|name| self.tool(name)).collect()
    }

    fn skill(&mut self, name: String) -> Value {
        json!({
            "name": name, "description": self.text(), "content": self.text(),
            "allowed_tools": self.maybe(|all| all.name_list("tool", 3)),
            "required_secrets": self.list(3, |all| json!({"name": all.text(), "optional": all.chance(50)})),
            "secrets_autonomous": self.chance(70),
        })
    }

    fn agent(&mut self) -> Value {
        let skills = self.names("skill", 5);
        let parts = self.names("part", 6);
        let subagents = self.names("sub", 4);
        let parts: Vec<Value> = parts
            .into_iter()
            .map(|name| {
                json!({
                    "name": name, "policy": self.object(3), "tools": self.tools("extra", 1),
                    "hooks": ["before_model", "wrap_tool_call"],
                })
            })
            .collect();
        json!({
            "agent_name": self.text(),
            "requested_model": self.maybe(|all| all.text().into()),
            "effective_model": self.text(),
            "profile": self.settings(),
            "overrides": self.settings(),
            "thinking_enabled": self.chance(50),
            "reasoning_effort": self.maybe(|all| all.text().into()),
            "prompt": self.text(),
            "data": self.maybe(|all| all.text().into()),
            "tools": self.tools("tool", 8),
            "middlewares": parts,
            "deferred_tool_names": self.name_list("tool", 4),
            "enabled_skills": skills.clone(),
            "skills": skills.into_iter().map(|name| self.skill(name)).collect::<Vec<_>>(),
            "policies": {
                "bootstrap": self.chance(10), "non_interactive": self.chance(50), "plan_mode": self.value(1),
                "subagents_enabled": self.chance(70),
                "max_concurrent": self.0.below(64) + 1, "max_total": self.0.below(50) + 1,
                "allowed_subagents": self.maybe(|all| all.name_list("sub", 4)),
                "subagents": subagents.into_iter().map(|name| json!([name, self.0.below(200), self.0.below(2000)])).collect::<Vec<_>>(),
                "deferred_tools_catalog_hash": self.maybe(|all| all.text().into()),
                "deferred_skills": self.chance(50),
                "recursion_limit": self.maybe(|all| all.0.below(1000).into()),
                "prompt_template_id": LEAD_TEMPLATE,
            },
            "package_version": env!("CARGO_PKG_VERSION"),
        })
    }
}

#[test]
fn another_language_computes_the_same_descriptors() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/descriptor/recompute.py");
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: descriptors are recomputed with python3, which is not installed");
        return;
    }
    let mut agents = Agents(Random::new(0xDE5C));
    let cases: Vec<Value> = (0..300)
        .map(|_| {
            let inputs = agents.agent();
            json!({"descriptor": described(&inputs), "inputs": inputs})
        })
        .collect();
    let file = std::env::temp_dir().join(format!("fawn-descriptors-{}.json", std::process::id()));
    std::fs::write(&file, serde_json::to_string(&cases).unwrap()).unwrap();
    let ran = Command::new("python3")
        .arg(script)
        .arg(&file)
        .output()
        .unwrap();
    let _ = std::fs::remove_file(&file);
    let said = String::from_utf8_lossy(&ran.stdout);
    let failed = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}{failed}");
    assert!(
        said.contains("300 descriptors recomputed, 0 differences"),
        "{said}"
    );
}

/// An agent with something of everything.
fn sample() -> Value {
    let tool = |name: &str| {
        json!({
            "name": name, "description": format!("Does {name}."), "origin": {"kind": "host"},
            "schema": {"type": "object", "properties": {"x": {"type": "string"}}},
        })
    };
    let skill = |name: &str| {
        json!({
            "name": name, "description": "When asked.", "content": format!("---\nname: {name}\n---\nDo it."),
            "allowed_tools": ["a", "b"], "required_secrets": [], "secrets_autonomous": true,
        })
    };
    let part = |name: &str| json!({"name": name, "policy": {"limits": {"warn": 3}}, "tools": [], "hooks": []});
    json!({
        "agent_name": "lead-agent", "requested_model": null, "effective_model": "m",
        "profile": {"provider": "openai", "model": "m", "temperature": 0.5, "max_tokens": 100, "api_key": "sk-1"},
        "overrides": {}, "thinking_enabled": true, "reasoning_effort": null, "prompt": "You are fawn.", "data": null,
        "tools": [tool("search"), tool("read"), tool("task")],
        "middlewares": [part("first"), part("second"), part("third")],
        "deferred_tool_names": ["search", "read"], "enabled_skills": ["s1", "s2"], "skills": [skill("s1"), skill("s2")],
        "policies": {
            "bootstrap": false, "non_interactive": false, "plan_mode": false, "subagents_enabled": true,
            "max_concurrent": 3, "max_total": 6, "allowed_subagents": null,
            "subagents": [["general-purpose", 150, 900], ["bash", 60, 900]],
            "deferred_tools_catalog_hash": "c", "deferred_skills": false, "recursion_limit": null,
            "prompt_template_id": LEAD_TEMPLATE,
        },
    })
}

/// The sample with the value at a pointer replaced.
fn with(pointer: &str, value: Value) -> Value {
    let mut agent = sample();
    let parent = pointer.rsplit_once('/').unwrap();
    match agent.pointer_mut(pointer) {
        Some(place) => *place = value,
        None => agent.pointer_mut(parent.0).unwrap()[parent.1] = value,
    }
    agent
}

fn swapped(list: &str) -> Value {
    let mut agent = sample();
    let items = agent.pointer_mut(list).unwrap().as_array_mut().unwrap();
    items.swap(0, 1);
    agent
}

fn fingerprint(agent: &Value) -> String {
    described(agent).fingerprint
}

#[test]
fn ad_26_order_and_what_is_no_identity_leave_the_fingerprint() {
    let mine = fingerprint(&sample());
    assert_eq!(mine.len(), 64);
    for list in [
        "/tools",
        "/skills",
        "/enabled_skills",
        "/deferred_tool_names",
        "/policies/subagents",
    ] {
        assert_eq!(fingerprint(&swapped(list)), mine, "{list}");
    }
    for (pointer, value) in [
        // AD-25: only the effective model reaches the provider.
        ("/requested_model", json!("other")),
        // AD-10, AD-11: names and secrets are no settings; AD-20: an allowlist has no order.
        ("/profile/api_key", json!("sk-2")),
        ("/profile/display_name", json!("M")),
        ("/skills/0/allowed_tools", json!(["b", "a"])),
        ("/middlewares/0/hooks", json!([])),
    ] {
        assert_eq!(fingerprint(&with(pointer, value)), mine, "{pointer}");
    }
    let mut rebuilt = described(&sample());
    rebuilt.build.git_commit = "abc".to_owned();
    assert_eq!(rebuilt.compute_fingerprint(), mine);
}

#[test]
fn ad_26_whatever_makes_another_agent_changes_the_fingerprint() {
    let mut seen = std::collections::HashMap::new();
    seen.insert(fingerprint(&sample()), "sample".to_owned());
    let mut differs = |what: String, agent: &Value| {
        if let Some(other) = seen.insert(fingerprint(agent), what.clone()) {
            panic!("{what} has the fingerprint of {other}");
        }
    };
    differs(
        "two middlewares swapped".to_owned(),
        &swapped("/middlewares"),
    );
    for (pointer, value) in [
        ("/agent_name", json!("other")),
        ("/effective_model", json!("n")),
        ("/overrides/temperature", json!(0.7)),
        // A-13: the reference's fingerprint does not see these.
        ("/profile/max_tokens", json!(200)),
        ("/profile/max_completion_tokens", json!(200)),
        ("/thinking_enabled", json!(false)),
        ("/reasoning_effort", json!("high")),
        ("/prompt", json!("You are fawn!")),
        ("/data", json!("")),
        ("/data", json!("<soul>")),
        ("/tools/0/name", json!("find")),
        ("/tools/0/description", json!("Does it.")),
        ("/tools/0/schema/properties/x/type", json!("number")),
        (
            "/tools/0/origin",
            json!({"kind": "mcp", "server": "web", "transport": "http"}),
        ),
        (
            "/tools/0/origin",
            json!({"kind": "mcp", "server": "web", "transport": "stdio"}),
        ),
        ("/middlewares/0/name", json!("zeroth")),
        ("/middlewares/0/policy/limits/warn", json!(4)),
        (
            "/middlewares/0/tools",
            json!([{"name": "t", "description": "", "schema": {}, "origin": {"kind": "builtin"}}]),
        ),
        ("/deferred_tool_names", json!(["search"])),
        ("/enabled_skills", json!(["s1"])),
        ("/skills/0/content", json!("Do it otherwise.")),
        ("/skills/0/description", json!("Never.")),
        ("/skills/0/secrets_autonomous", json!(false)),
        (
            "/skills/0/required_secrets",
            json!([{"name": "K", "optional": false}]),
        ),
        (
            "/skills/0/required_secrets",
            json!([{"name": "K", "optional": true}]),
        ),
        // XT-11, AD-20: undeclared, none and some are three things.
        ("/skills/0/allowed_tools", json!(null)),
        ("/skills/0/allowed_tools", json!([])),
        ("/skills/0/allowed_tools", json!(["a"])),
        ("/policies/bootstrap", json!(true)),
        ("/policies/non_interactive", json!(true)),
        ("/policies/plan_mode", json!(true)),
        ("/policies/subagents_enabled", json!(false)),
        ("/policies/max_concurrent", json!(4)),
        ("/policies/max_total", json!(7)),
        // A-15: the scope is part of the policy, not only of the prompt.
        ("/policies/allowed_subagents", json!(["bash"])),
        ("/policies/subagents/0/1", json!(151)),
        ("/policies/deferred_tools_catalog_hash", json!("d")),
        ("/policies/deferred_skills", json!(true)),
        ("/policies/recursion_limit", json!(100)),
    ] {
        differs(format!("{pointer} {value}"), &with(pointer, value.clone()));
    }
}

#[test]
fn xt_11_an_allowlist_has_three_states_and_no_order() {
    let hash = |allowed: Value| fingerprint(&with("/skills/0/allowed_tools", allowed));
    let three = [hash(json!(null)), hash(json!([])), hash(json!(["a"]))];
    assert!(three[0] != three[1] && three[1] != three[2] && three[0] != three[2]);
    assert_eq!(hash(json!(["a", "b"])), hash(json!(["b", "a"])));
}

#[test]
fn ep_12_the_descriptor_is_about_the_prompt_and_the_tools_that_are_used() {
    let found = described(&sample());
    assert_eq!(found.base_prompt_hash, text_hash("You are fawn."));
    assert_eq!(found.base_data_hash, None);
    let names: Vec<&str> = found.middlewares.iter().map(|part| &*part.name).collect();
    assert_eq!(names, ["first", "second", "third"]);
    assert_eq!(found.middlewares[0].module, "fawn::middleware::first");
    assert_eq!(found.model_parameters.get("api_key"), None);
    assert_eq!(found.model_parameters["max_tokens"], 100);
    let subagents = &found.effective_policies["subagents"];
    assert_eq!(
        subagents["type_allowlist"],
        json!(["bash", "general-purpose"])
    );
    assert_eq!(
        found.effective_policies["recursion_limit"],
        "framework-default"
    );
    // AD-13: the tools of middlewares come last.
    let extra = json!([{"name": "write_todos", "description": "", "schema": {}, "origin": {"kind": "builtin"}}]);
    let names: Vec<String> = described(&with("/middlewares/0/tools", extra))
        .tools
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(names, ["search", "read", "task", "write_todos"]);
}

#[test]
fn a_15_what_may_not_be_delegated_to_is_no_part_of_the_policy() {
    let subagents = |pointer: &str, value: Value| {
        described(&with(pointer, value)).effective_policies["subagents"].clone()
    };
    let scoped = subagents("/policies/allowed_subagents", json!(["bash", "nobody"]));
    assert_eq!(scoped["type_allowlist"], json!(["bash"]));
    assert_eq!(
        scoped["runtime_limits"],
        json!({"bash": {"max_turns": 60, "timeout_seconds": 900}})
    );
    let off = subagents("/policies/subagents_enabled", json!(false));
    assert_eq!(
        (&off["type_allowlist"], &off["runtime_limits"]),
        (&json!([]), &json!({}))
    );
}

#[test]
fn a_descriptor_reads_back_as_it_was_written() {
    let mut agents = Agents(Random::new(3));
    for _ in 0..50 {
        let mine = described(&agents.agent());
        let text = serde_json::to_string(&mine).unwrap();
        let back = AssemblyDescriptor::from_foreign(serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        assert_eq!(back.compute_fingerprint(), mine.fingerprint);
    }
}

/// The kinds of the changes between the sample and another agent, with name and whether they are part of the identity.
fn changes(after: &Value) -> Vec<(String, Option<String>, bool)> {
    let found = diff(&json!(described(&sample())), &json!(described(after))).unwrap();
    let kind = |what: Value| text(&what);
    found
        .changes
        .into_iter()
        .map(|change| (kind(json!(change.what)), change.name, change.identity))
        .collect()
}

#[test]
fn a_difference_tells_what_changed() {
    let told = |after: &Value| -> String {
        let (before, after) = (json!(described(&sample())), json!(described(after)));
        diff(&before, &after).unwrap().text
    };
    assert_eq!(told(&sample()), "Nothing changed.");
    let mut agent = sample();
    let list = agent["tools"].as_array_mut().unwrap();
    list.remove(1);
    list[0]["schema"] = json!({});
    list.push(
        json!({"name": "write", "description": "", "schema": {}, "origin": {"kind": "builtin"}}),
    );
    assert_eq!(
        told(&agent),
        "The agent is another. Tool \"write\" was added. Tool \"read\" was removed. Tool \"search\" changed: schema."
    );
    assert_eq!(
        told(&with("/middlewares/1/policy/limits/warn", json!(5))),
        "The agent is another. Setting \"limits.warn\" of middleware \"second\" changed from 3 to 5."
    );
    let mut agent = sample();
    let chain = agent["middlewares"].as_array_mut().unwrap();
    let first = chain.remove(0);
    chain.push(first);
    assert_eq!(
        told(&agent),
        "The agent is another. Middleware \"first\" moved from place 0 to place 2."
    );
    assert_eq!(
        told(&with("/policies/max_total", json!(9))),
        "The agent is another. Policy \"subagents.max_total\" changed from 6 to 9."
    );
    assert_eq!(
        told(&with("/skills/1/content", json!("New."))),
        "The agent is another. Skill \"s2\" changed: SKILL.md."
    );
    assert_eq!(
        told(&with("/requested_model", json!("x"))),
        "The agent is the same; only what is no part of its identity changed. The requested model changed from null to \"x\"."
    );
    assert_eq!(
        told(&with("/overrides/max_tokens", json!(7))),
        "The agent is another. Model parameter \"max_tokens\" changed from 100 to 7."
    );
}

#[test]
fn each_kind_of_change_is_told_once() {
    let one = |kind: &str, name: Option<&str>, identity: bool| {
        vec![(kind.to_owned(), name.map(str::to_owned), identity)]
    };
    for (after, expected) in [
        (
            with("/agent_name", json!("x")),
            one("agent_changed", None, true),
        ),
        (
            with("/effective_model", json!("n")),
            one("model_changed", None, true),
        ),
        (
            with("/thinking_enabled", json!(false)),
            one("thinking_changed", None, true),
        ),
        (
            with("/reasoning_effort", json!("low")),
            one("reasoning_effort_changed", None, true),
        ),
        (
            with("/prompt", json!("x")),
            one("prompt_changed", None, true),
        ),
        (with("/data", json!("x")), one("data_changed", None, true)),
        (swapped("/tools"), one("tools_reordered", None, false)),
        (swapped("/skills"), one("skills_reordered", None, false)),
        (
            swapped("/enabled_skills"),
            one("skills_reordered", None, false),
        ),
        (
            swapped("/middlewares"),
            one("middleware_moved", Some("second"), true),
        ),
        (
            with("/overrides/seed", json!(1)),
            one("model_parameter_added", Some("seed"), true),
        ),
        (
            with("/skills/0/allowed_tools", json!(null)),
            one("skill_changed", Some("s1"), true),
        ),
        (
            with("/deferred_tool_names", json!(["read"])),
            one("deferred_tool_removed", Some("search"), true),
        ),
        (
            with("/policies/recursion_limit", json!(9)),
            one("policy_changed", Some("recursion_limit"), true),
        ),
    ] {
        assert_eq!(changes(&after), expected, "{}", expected[0].0);
    }
    let mut fewer = sample();
    fewer["skills"].as_array_mut().unwrap().remove(0);
    fewer["enabled_skills"].as_array_mut().unwrap().remove(0);
    assert_eq!(changes(&fewer), one("skill_removed", Some("s1"), true));
    // What an older version, or the reference, does not say.
    let mut bare = json!(described(&with("/skills/0/content", json!("x"))));
    bare.as_object_mut().unwrap().remove("skills");
    let found = diff(&json!(described(&sample())), &bare).unwrap();
    let kinds: Vec<Value> = found.changes.iter().map(|one| json!(one.what)).collect();
    assert_eq!(kinds, ["skill_catalog_changed"]);
    let mut newer = json!(described(&sample()));
    newer["from_the_future"] = json!(1);
    newer["tools"][0]["plugin"] = json!("p");
    newer["build"]["git_commit"] = json!("abc");
    let found = diff(&json!(described(&sample())), &newer).unwrap();
    let kinds: Vec<Value> = found.changes.iter().map(|one| json!(one.what)).collect();
    assert_eq!(kinds, ["tool_changed", "build_changed", "other_changed"]);
    assert!(found.same && found.warnings.is_empty());
    newer["fingerprint"] = json!("f");
    assert_eq!(diff(&newer, &newer).unwrap().warnings.len(), 2);
}

#[test]
fn a_difference_is_never_silent_about_another_identity() {
    // Between any two agents, alike but for a few members: another fingerprint if and only if a change of the identity.
    let mut agents = Agents(Random::new(17));
    let mut different = 0;
    for _ in 0..400 {
        let mut before = json!(described(&agents.agent()));
        let other = json!(described(&agents.agent()));
        if agents.chance(50) {
            before["tools"] = json!([]);
        }
        let mut after = before.clone();
        for (name, value) in other.as_object().unwrap() {
            if agents.chance(15) {
                after[name] = value.clone();
            }
        }
        if let Some(list) = after["tools"].as_array_mut() {
            list.reverse();
        }
        let found = diff(&before, &after).unwrap();
        let told = found.changes.iter().any(|change| change.identity);
        assert_eq!(found.same, !told, "{}\n{before}\n{after}", found.text);
        different += u32::from(!found.same);
        for change in &found.changes {
            // The path of what is gone leads into the earlier one.
            let is_gone = change.after.is_null() && !change.before.is_null();
            let (side, shown) = match is_gone {
                true => (&before, &change.before),
                false => (&after, &change.after),
            };
            // Places and orders are told, not what stands there.
            let is_place = matches!(
                change.what,
                DescriptorChangeKind::MiddlewareMoved
                    | DescriptorChangeKind::ToolsReordered
                    | DescriptorChangeKind::SkillsReordered
            );
            let found = side.pointer(&change.path).map(canonical_json);
            let is_null = found.is_none() && shown.is_null();
            assert!(
                is_place || is_null || found == Some(canonical_json(shown)),
                "{change:?}"
            );
        }
    }
    assert!((100..400).contains(&different), "{different}");
}

#[test]
fn hostile_descriptors_get_an_error_with_a_path_or_a_bounded_answer() {
    let mine = json!(described(&sample()));
    for (side, pointer) in [("before", "/before"), ("after", "/after")] {
        for (member, bad) in [
            ("tools", json!({})),
            ("tools", json!([1])),
            ("middlewares", json!([{"name": "x"}])),
            ("skills", json!("x")),
            ("enabled_skills", json!([1])),
            ("effective_policies", json!(null)),
            ("thinking_enabled", json!("yes")),
            ("build", json!([])),
            ("fingerprint", json!(7)),
        ] {
            let mut broken = mine.clone();
            broken[member] = bad.clone();
            let pair = if side == "before" {
                (&broken, &mine)
            } else {
                (&mine, &broken)
            };
            let error = diff(pair.0, pair.1).unwrap_err();
            let path = error.path.unwrap_or_default();
            assert!(
                path.starts_with(&format!("{pointer}/{member}")),
                "{member} {bad}: {path}"
            );
        }
    }
    assert_eq!(
        diff(&json!(null), &mine).unwrap_err().path.as_deref(),
        Some("/before")
    );

    // Very many members, and long names above them: the answer stays in proportion.
    let policies = |value: u32| -> Value {
        let leaves: Map<String, Value> =
            (0..50_000).map(|n| (n.to_string(), json!(value))).collect();
        let deep = json!({"b".repeat(1_000_000): leaves.clone()});
        json!({"a".repeat(1_000_000): leaves, "deep": deep, "many": leaves})
    };
    let (mut before, mut after) = (mine.clone(), mine);
    before["effective_policies"] = policies(1);
    after["effective_policies"] = policies(2);
    for (side, value) in [(&mut before, 1), (&mut after, 2)] {
        side["middlewares"][0]["name"] = "m".repeat(1_000_000).into();
        side["middlewares"][0]["policy_parameters"] = policies(value);
    }
    let started = Instant::now();
    let found = diff(&before, &after).unwrap();
    assert_eq!(found.changes.len(), 10_000);
    assert!(found.left_out > 30_000, "{}", found.left_out);
    let answer = serde_json::to_string(&found).unwrap().len();
    assert!(answer < 4 * before.to_string().len(), "{answer}");
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
