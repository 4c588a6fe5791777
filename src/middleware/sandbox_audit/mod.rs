//! Looks at shell commands before they are run: refuses the dangerous ones, and notes on the result of a risky one that it was.
//!
//! This is one layer more, and no boundary: what a command may do is up to the sandbox that it runs in (MW-AUD-5).
//!
//! Source: DeerFlow `SandboxAuditMiddleware`, MW-AUD-1 to MW-AUD-5. A result that gets a warning keeps its metadata, which the
//! reference loses by accident.

mod rules;
mod shell;
#[cfg(test)]
mod tests;
mod work;

use serde_json::{Map, Value};

use self::rules::{RULES, Risk, Rule, examine};
use super::message_marks::first_chars;
use super::refusal::refused;
use super::reply::{append_below, members};
use super::tool_result_class::of_refusal;
use super::{Hooks, Middleware, NextTool};
use crate::ports::BoxFuture;
use crate::ports::signals::AuditRecord;
use crate::ports::tool::{ToolInvocation, ToolOutcome};
use crate::protocol::canonical_json::text_hash;
use crate::protocol::warning::Warning;

/// The tool that runs commands.
const TOOL: &str = "bash";
/// Longest command, in characters (MW-AUD-1).
const MAX_COMMAND_CHARS: usize = 10_000;
/// How much of a command logs show, in characters (MW-AUD-1).
const LOGGED_CHARS: usize = 200;

/// The middleware.
#[derive(Clone, Copy, Debug, Default)]
pub struct SandboxAudit;

/// What is to be done with a command.
#[derive(Debug)]
enum Verdict {
    Run,
    /// Run it, and tell the model.
    Tell(&'static Rule),
    /// The name of what is wrong, and what it is.
    Refuse(&'static str, &'static str),
}

/// Judges a command; one that is no text counts as blank.
fn judge(command: &str) -> Verdict {
    let is_blank = command.trim().is_empty();
    // A character has at most four bytes: what is far too long is not counted.
    let is_long = command.len() > 4 * MAX_COMMAND_CHARS
        || first_chars(command, MAX_COMMAND_CHARS).len() < command.len();
    if is_blank {
        return Verdict::Refuse("blank_command", "is blank");
    } else if is_long {
        return Verdict::Refuse("long_command", "is longer than 10000 characters");
    } else if command.contains('\0') {
        return Verdict::Refuse("nul_character", "holds a NUL character");
    }
    match examine(command) {
        None => Verdict::Run,
        Some(rule) if rule.risk == Risk::High => Verdict::Refuse(rule.name, rule.about),
        Some(rule) => Verdict::Tell(rule),
    }
}

/// Tells the host of a command that is more than harmless.
fn record(invocation: &ToolInvocation, command: &str, risk: Risk, rule: &str) {
    let (warning, follows, action) = match risk {
        Risk::High => (Warning::CommandRefused, "was not run", "block_command"),
        Risk::Medium => (Warning::CommandRisky, "was run", "warn_of_command"),
    };
    let changes = members([
        ("tool_name", TOOL.into()),
        ("tool_call_id", invocation.call_id.as_str().into()),
        ("rule", rule.into()),
        ("command", first_chars(command, LOGGED_CHARS).into()),
    ]);
    let message = format!(
        "a command of call {:?} {follows} (rule {rule})",
        invocation.call_id
    );
    let signals = &invocation.run.facts.signals;
    signals.warn(warning, message);
    signals.record(AuditRecord {
        tag: "sandbox_audit",
        action,
        changes,
    });
}

impl Middleware for SandboxAudit {
    fn name(&self) -> &str {
        "sandbox_audit"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            wrap_tool_call: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        members([
            ("max_command_chars", MAX_COMMAND_CHARS.into()),
            ("rules", text_hash(&format!("{RULES:?}")).into()),
        ])
    }

    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        if invocation.name != TOOL {
            return next.run(invocation);
        }
        let command = invocation.args.get("command").and_then(Value::as_str);
        let command = command.unwrap_or_default();
        let rule = match judge(command) {
            Verdict::Run => return next.run(invocation),
            Verdict::Refuse(rule, about) => {
                record(&invocation, command, Risk::High, rule);
                let text = format!(
                    "this command {about}, so it was not run. Find another way that does not."
                );
                let refusal = refused(&text, of_refusal());
                return Box::pin(std::future::ready(refusal));
            }
            Verdict::Tell(rule) => rule,
        };
        record(&invocation, command, Risk::Medium, rule.name);
        let call = next.run(invocation);
        Box::pin(async move {
            let mut outcome = call.await;
            if let ToolOutcome::Answer(answer) = &mut outcome
                && answer.update.is_none()
                && !answer.end_run
            {
                let about = rule.about;
                let line = format!(
                    "\u{26a0}\u{fe0f} Warning: this command {about}. What runs after it may find things changed."
                );
                answer.content = append_below(&answer.content, &line);
            }
            outcome
        })
    }
}
