//! Draws a descriptor: the loop, the chain, the tools by source and the subagents, as a flowchart in Mermaid's language.
//!
//! Names come from configurations, MCP servers and users, so that every label is quoted, and whatever is not a plain letter,
//! digit or mark in it is written as a character number: no name can end its label, begin a statement, or be markup.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::protocol::descriptor::{AssemblyDescriptor, MiddlewareDescriptor, ToolDescriptor};
use crate::protocol::descriptor_diff::DescriptorDiagram;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::parse;

/// Most characters of a name in a label.
const MAX_LABEL_CHARS: usize = 80;
/// Most tools of one source, middlewares of one hook, and subagents, that are drawn one by one; the rest is counted. Mermaid
/// refuses charts of more than 50,000 characters unless it is told otherwise.
const MAX_DRAWN: usize = 60;

/// Draws the descriptor that a text holds; answers `{"mermaid": …}`.
///
/// # Errors
/// The codes of JSON; `MissingMember` or `WrongType` where the text is no descriptor, with the path.
pub fn diagram_document(text: &str) -> Result<String, Error> {
    let descriptor = AssemblyDescriptor::from_foreign(parse(text)?)?;
    let diagram = DescriptorDiagram {
        mermaid: diagram(&descriptor),
    };
    serde_json::to_string(&diagram)
        .map_err(|error| Error::new(ErrorCode::Internal, "a diagram is no JSON").caused_by(error))
}

/// Draws a descriptor. Every line is a statement of its own.
pub fn diagram(descriptor: &AssemblyDescriptor) -> String {
    let mut chart = Chart::default();
    chart.line("flowchart TD");
    chart.line(&format!(
        "start([\"{}\"]) --> before_agent",
        label(&descriptor.agent_name)
    ));
    let chain = &descriptor.middlewares;
    // After-hooks run from the inside out (EX-2).
    for (hook, inside_out) in [
        ("before_agent", false),
        ("before_model", false),
        ("after_model", true),
        ("after_agent", true),
    ] {
        chart.stage(hook, "", having(chain, hook, inside_out));
    }
    let mut model = vec![format!("model {}", label(&descriptor.effective_model))];
    if descriptor.thinking_enabled {
        model.push("thinks".to_owned());
    }
    chart.line(&format!("model([\"{}\"])", model.join("<br/>")));
    chart.stage(
        "wrap_model_call",
        "around each model call",
        having(chain, "wrap_model_call", false),
    );
    chart.stage(
        "wrap_tool_call",
        "around each tool call",
        having(chain, "wrap_tool_call", false),
    );
    chart.line("before_agent --> before_model --> wrap_model_call --> model --> after_model");
    chart.line("after_model -->|\"tool calls\"| wrap_tool_call --> tools");
    chart.line("tools --> before_model");
    chart.line("after_model -->|\"no tool calls\"| after_agent --> done([\"done\"])");
    chart.chain(chain);
    chart.tools(descriptor);
    chart.subagents(descriptor);
    chart.text
}

/// The names of the middlewares that have a hook, in the order in which they run.
fn having<'a>(chain: &'a [MiddlewareDescriptor], hook: &str, inside_out: bool) -> Vec<&'a str> {
    let has = |part: &&MiddlewareDescriptor| part.hooks.iter().any(|one| one == hook);
    let mut names: Vec<&str> = chain.iter().filter(has).map(|part| &*part.name).collect();
    if inside_out {
        names.reverse();
    }
    names
}

/// The chart so far.
#[derive(Default)]
struct Chart {
    text: String,
    depth: usize,
}

impl Chart {
    fn line(&mut self, statement: &str) {
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
        self.text.push_str(statement);
        self.text.push('\n');
        self.depth = self.depth.max(1);
    }

    fn open(&mut self, id: &str, title: &str) {
        self.line(&format!("subgraph {id}[\"{title}\"]"));
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.line("end");
    }

    /// A place in the loop, with the middlewares that work there.
    fn stage(&mut self, id: &str, what: &str, names: Vec<&str>) {
        let mut text = id.to_owned();
        if !what.is_empty() {
            let _ = write!(text, "<br/>{what}");
        }
        for (place, name) in names.iter().take(MAX_DRAWN).enumerate() {
            let _ = write!(text, "<br/>{}. {}", place + 1, label(name));
        }
        if names.len() > MAX_DRAWN {
            let _ = write!(text, "<br/>and {} more", names.len() - MAX_DRAWN);
        }
        self.line(&format!("{id}[\"{text}\"]"));
    }

    fn chain(&mut self, chain: &[MiddlewareDescriptor]) {
        if chain.is_empty() {
            return;
        }
        self.open("chain", "middleware, outermost first");
        for (place, part) in chain.iter().take(MAX_DRAWN).enumerate() {
            self.line(&format!(
                "m{place}[\"{}. {}\"]",
                place + 1,
                label(&part.name)
            ));
            if place > 0 {
                self.line(&format!("m{} --> m{place}", place - 1));
            }
        }
        self.rest("m", chain.len());
        self.close();
    }

    fn tools(&mut self, descriptor: &AssemblyDescriptor) {
        let mut sources: BTreeMap<&str, Vec<&ToolDescriptor>> = BTreeMap::new();
        for tool in &descriptor.tools {
            sources.entry(&tool.source).or_default().push(tool);
        }
        let deferred: HashSet<&String> = descriptor.deferred_tool_names.iter().collect();
        self.open("tools", "tools");
        if sources.is_empty() {
            self.line("no_tools[\"none\"]");
        }
        let count = sources.len();
        for (group, (source, tools)) in sources.into_iter().take(MAX_DRAWN).enumerate() {
            self.open(&format!("source{group}"), &label(source));
            for (place, tool) in tools.iter().take(MAX_DRAWN).enumerate() {
                let is_deferred = deferred.contains(&tool.name);
                let note = if is_deferred { "<br/>deferred" } else { "" };
                self.line(&format!(
                    "t{group}_{place}[\"{}{note}\"]",
                    label(&tool.name)
                ));
            }
            self.rest(&format!("t{group}_"), tools.len());
            self.close();
        }
        self.rest("source", count);
        self.close();
    }

    fn subagents(&mut self, descriptor: &AssemblyDescriptor) {
        let policies = descriptor.effective_policies.get("subagents");
        let allowed = policies.and_then(|policies| policies.get("type_allowlist"));
        let names: Vec<&str> = allowed
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if names.is_empty() {
            return;
        }
        self.open("subagents", "subagents");
        for (place, name) in names.iter().take(MAX_DRAWN).enumerate() {
            self.line(&format!("a{place}([\"{}\"])", label(name)));
        }
        self.rest("a", names.len());
        self.close();
        self.line("tools -.->|\"task\"| subagents");
    }

    /// A node for what is not drawn one by one.
    fn rest(&mut self, prefix: &str, count: usize) {
        if count > MAX_DRAWN {
            self.line(&format!("{prefix}rest[\"and {} more\"]", count - MAX_DRAWN));
        }
    }
}

/// A name as it may stand between the quotes of a label.
fn label(name: &str) -> String {
    let mut label = String::new();
    let mut chars = name.chars();
    for char in chars.by_ref().take(MAX_LABEL_CHARS) {
        match char {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '_' | '-' | '.' | ' ' | ':' | '/' => {
                label.push(char)
            }
            // Letters of other scripts are letters to Mermaid too.
            char if char.is_alphanumeric() => label.push(char),
            // Line breaks, and what is not seen or turns the reading order.
            char if char.is_control() || !is_seen(char) => label.push('\u{fffd}'),
            char => {
                let _ = write!(label, "#{};", u32::from(char));
            }
        }
    }
    if chars.next().is_some() {
        label.push('…');
    }
    if label.trim().is_empty() {
        // An empty label is a syntax error.
        label.push_str("unnamed");
    }
    label
}

/// Whether a character shows: the standard library escapes those that do not, and combining ones when they stand alone.
fn is_seen(char: char) -> bool {
    char.escape_debug().count() == 1 || matches!(char, '"' | '\'' | '\\')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn descriptor(members: Value) -> AssemblyDescriptor {
        let mut value = json!({
            "namespace": "deerflow", "agent_name": "lead-agent", "effective_model": "m",
            "model_parameters": {}, "thinking_enabled": false, "reasoning_effort": null,
            "base_prompt_hash": "p", "tools": [], "middlewares": [], "deferred_tool_names": [],
            "enabled_skills": [], "effective_policies": {},
        });
        let all = value.as_object_mut().expect("an object");
        all.extend(members.as_object().cloned().expect("an object"));
        AssemblyDescriptor::from_foreign(value).expect("a descriptor")
    }

    fn tool(name: &str, source: &str) -> Value {
        json!({"name": name, "description_hash": "d", "schema_hash": "s", "source": source})
    }

    #[test]
    fn everything_has_its_place() {
        let drawn = diagram(&descriptor(json!({
            "thinking_enabled": true,
            "tools": [tool("search", "mcp:web"), tool("task", "builtin"), tool("read", "builtin")],
            "deferred_tool_names": ["search"],
            "middlewares": [
                {"name": "first", "module": "m", "hooks": ["before_model", "after_model"]},
                {"name": "second", "module": "m", "hooks": ["after_model", "wrap_tool_call"]},
            ],
            "effective_policies": {"subagents": {"type_allowlist": ["bash", "general-purpose"]}},
        })));
        let expected = r#"flowchart TD
  start(["lead-agent"]) --> before_agent
  before_agent["before_agent"]
  before_model["before_model<br/>1. first"]
  after_model["after_model<br/>1. second<br/>2. first"]
  after_agent["after_agent"]
  model(["model m<br/>thinks"])
  wrap_model_call["wrap_model_call<br/>around each model call"]
  wrap_tool_call["wrap_tool_call<br/>around each tool call<br/>1. second"]
  before_agent --> before_model --> wrap_model_call --> model --> after_model
  after_model -->|"tool calls"| wrap_tool_call --> tools
  tools --> before_model
  after_model -->|"no tool calls"| after_agent --> done(["done"])
  subgraph chain["middleware, outermost first"]
    m0["1. first"]
    m1["2. second"]
    m0 --> m1
  end
  subgraph tools["tools"]
    subgraph source0["builtin"]
      t0_0["task"]
      t0_1["read"]
    end
    subgraph source1["mcp:web"]
      t1_0["search<br/>deferred"]
    end
  end
  subgraph subagents["subagents"]
    a0(["bash"])
    a1(["general-purpose"])
  end
  tools -.->|"task"| subagents
"#;
        assert_eq!(drawn, expected);
    }

    /// Whether a line is one of the statements that we write, whatever the names in it.
    fn is_statement(line: &str) -> bool {
        // Labels are all that stands between quotes.
        let parts: Vec<&str> = line.trim_start().split('"').collect();
        let labels_are_plain = parts.iter().skip(1).step_by(2).all(|label| {
            let label = label.replace("<br/>", "");
            let plain = |c: char| c.is_alphanumeric() || "_-. :/#;,…\u{fffd}".contains(c);
            label.chars().all(plain)
        });
        let outside: String = parts.iter().step_by(2).copied().collect();
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-. >[]()|".contains(c);
        let has_empty = line.contains("\"\"");
        parts.len() % 2 == 1 && !has_empty && labels_are_plain && outside.chars().all(plain)
    }

    #[test]
    fn no_name_breaks_out_of_its_label() {
        let hostile = [
            "\"]\nend\nclick t0_0 href \"javascript:alert(1)\"",
            "a\"]; x --> y",
            "`markdown **bold**`",
            "<script>alert(1)</script><br/>",
            "&lt;b&gt; #quot; #35;",
            "%%{init: {\"theme\": \"dark\"}}%%",
            "end",
            "a\r\nb\u{2028}c\u{2029}d\u{85}e\u{0}",
            "\u{202e}txt.exe\u{200b}\u{feff}",
            "🦀 日本語 é",
            "\\n \\\" ' ( ) [ ] { } | --> :::x @{ shape: x }",
            &"x".repeat(10_000),
            "",
            "  ",
        ];
        for name in hostile {
            let plain = diagram(&descriptor(json!({"tools": [tool("t", "s")]})));
            let drawn = diagram(&descriptor(json!({
                "agent_name": name, "effective_model": name,
                "tools": [tool(name, name)],
                "middlewares": [{"name": name, "module": "m", "hooks": ["before_agent", "wrap_tool_call"]}],
                "effective_policies": {"subagents": {"type_allowlist": [name]}},
            })));
            for line in drawn.lines() {
                assert!(is_statement(line), "{name:?}: {line}");
            }
            // The chain has three lines, subagents have four.
            assert_eq!(
                drawn.lines().count(),
                plain.lines().count() + 3 + 4,
                "{name:?}"
            );
            assert!(drawn.len() < 10_000, "{name:?}");
        }
        assert_eq!(label("a\"b<c>&`#;"), "a#34;b#60;c#62;#38;#96;#35;#59;");
        assert_eq!(label("日本 é 1/2"), "日本 é 1/2");
    }

    #[test]
    fn a_chart_of_very_many_parts_stays_small() {
        let tools: Vec<Value> = (0..5000).map(|n| tool(&format!("tool{n}"), "s")).collect();
        let drawn = diagram(&descriptor(json!({"tools": tools})));
        assert!(drawn.contains("t0_rest[\"and 4940 more\"]"), "{drawn}");
        assert!(drawn.len() < 10_000);
    }
}
