//! Warnings: what went otherwise than asked for, without being an error. They reach the host as `log` events.

/// What a warning is about; its name is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Warning {
    /// A reply has calls whose arguments are no JSON object; they are not executed.
    InvalidToolCalls,
    /// A model asked for a tool that the assembly does not have.
    UnknownTool,
    /// Arguments of a call do not fit the tool's schema; the tool was not called.
    ArgumentsRefused,
    /// The host did not answer a call in time.
    HostCallDeadline,
    /// Another process wrote to the thread while a run was on it.
    ThreadStale,
    /// A lead agent was asked for a model that the runtime does not have; the default model stands in (MD-1).
    ModelUnknown,
    /// A setting of the model was void beside another one, and was left out (MD-9).
    ModelSettingVoid,
    /// A lead agent was asked to think with a model that cannot (MD-5).
    ThinkingUnsupported,
    /// The model is not this user's to use; another stands in (MD-2).
    ModelReplaced,
    /// The authorization could not be asked: what follows is up to the configuration's `fail_closed` (MD-2, TL-8).
    AuthorizationFailed,
    /// A second tool has a name that is taken, and was left out (TL-1).
    ToolDuplicate,
    /// A configured tool is not there in this version or build, and was left out (TL-3).
    ToolUnavailable,
    /// Both `configurable` and `context` were given; `context` wins (RC-8).
    ContextWins,
    /// A skill's SKILL.md cannot be used, and was left out (SKL-4).
    SkillSkipped,
    /// A skill is there, but something in its files is passed over: a secret's name, a state (SKL-6, SKL-7).
    SkillFlawed,
    /// A custom agent's list of skills names one that there is not.
    SkillUnknown,
    /// The skills could not be looked up while an agent ran; none is activated, no secrets are bound, and tools are restricted
    /// where skills are active (MW-SKA-6, MW-STP-2).
    SkillsUnreadable,
    /// An active skill needs secrets that the request did not bring (MW-SKA-6).
    SkillSecretsMissing,
    /// A custom agent's record could not be read where its memory policy was asked for; memory stays on (CA-9).
    AgentUnreadable,
    /// A member of `configurable` or `context` has nearly the name of an option, and is none.
    OptionMisspelt,
    /// A setting of subagents is hardly meant as it stands: it names a tool or a subagent that there is not, or has no effect.
    SubagentSettingDoubtful,
    /// A reply delegates, and nobody says in which run: all delegations of the thread count (LIM-4).
    SubagentRunUnknown,
    /// The provider ended a reply for safety; its calls were not executed (MW-SAF-4).
    SafetyTermination,
    /// What a message says the user wrote is no text; the text of the message stands in (MW-SAN-8).
    OriginalContentReplaced,
    /// No model could summarise a thread that has grown long; its history stays as it is (MW-SUM-6).
    SummaryFailed,
    /// A file that a message names is not there, or its name is none (MW-UPL-1).
    UploadIgnored,
    /// The sandbox could not be had, or not be given back.
    SandboxFailed,
    /// What a run said could not be handed to the memory (MW-MEM-1).
    MemoryFailed,
    /// What was to be done before messages leave a thread could not be done; they leave all the same (MW-SUM-8).
    CompactionHookFailed,
    /// The output of a tool was too long, and could not be written to a file; it was cut, or stayed as it is (MW-TOB-3).
    OutputNotStored,
    /// A middleware of the host gave no verdict; what its `on_timeout` says counts.
    NoVerdict,
    /// A skill's file was read, and nothing marks the result as that file: the skill is not noted as read (MW-DUR-7).
    SkillReadUnmarked,
    /// Nobody could judge whether a goal is reached; the run ends as it would without one (GOAL-15).
    GoalEvaluationFailed,
    /// What came of a goal could not be stored; the run ends as it would without one.
    GoalNotStored,
    /// A guardrail denied a call; it was not made (MW-GRD-3).
    GuardrailDenied,
    /// A guardrail could not be asked about a call: what follows is up to the configuration's `fail_closed` (MW-GRD-2).
    GuardrailFailed,
    /// A shell command is dangerous or no command at all; it was not run (MW-AUD-1).
    CommandRefused,
    /// A shell command is risky; it was run (MW-AUD-4).
    CommandRisky,
    /// A model failed so often that it is not asked for a while (MW-LLM-6).
    CircuitOpened,
    /// An agent's configuration says how many model calls or subagents may run at once, and the runtime or the process goes by
    /// other numbers since before (MW-LLM-7, RT-37).
    ConcurrencyFixed,
    /// A section of the configuration has settings, is off by default, and nothing says `enabled`; it stays off.
    SectionOff,
    /// A run ended with a reply that says nothing, and nothing of it could be done.
    EmptyReply,
    /// A model does not say how many tokens it used, so that a budget of tokens counts nothing.
    UsageUnreported,
}

impl Warning {
    /// Name in JSON.
    pub const fn code(self) -> &'static str {
        match self {
            Warning::InvalidToolCalls => "invalid_tool_calls",
            Warning::UnknownTool => "unknown_tool",
            Warning::ArgumentsRefused => "arguments_refused",
            Warning::HostCallDeadline => "host_call_deadline",
            Warning::ThreadStale => "thread_stale",
            Warning::ModelUnknown => "model_unknown",
            Warning::ModelSettingVoid => "model_setting_void",
            Warning::ThinkingUnsupported => "thinking_unsupported",
            Warning::ModelReplaced => "model_replaced",
            Warning::AuthorizationFailed => "authorization_failed",
            Warning::ToolDuplicate => "tool_duplicate",
            Warning::ToolUnavailable => "tool_unavailable",
            Warning::ContextWins => "context_wins",
            Warning::SkillSkipped => "skill_skipped",
            Warning::SkillFlawed => "skill_flawed",
            Warning::SkillUnknown => "skill_unknown",
            Warning::SkillsUnreadable => "skills_unreadable",
            Warning::SkillSecretsMissing => "skill_secrets_missing",
            Warning::AgentUnreadable => "agent_unreadable",
            Warning::OptionMisspelt => "option_misspelt",
            Warning::SubagentSettingDoubtful => "subagent_setting_doubtful",
            Warning::SubagentRunUnknown => "subagent_run_unknown",
            Warning::SafetyTermination => "safety_termination",
            Warning::OriginalContentReplaced => "original_content_replaced",
            Warning::SummaryFailed => "summary_failed",
            Warning::UploadIgnored => "upload_ignored",
            Warning::SandboxFailed => "sandbox_failed",
            Warning::MemoryFailed => "memory_failed",
            Warning::CompactionHookFailed => "compaction_hook_failed",
            Warning::OutputNotStored => "output_not_stored",
            Warning::NoVerdict => "no_verdict",
            Warning::SkillReadUnmarked => "skill_read_unmarked",
            Warning::GoalEvaluationFailed => "goal_evaluation_failed",
            Warning::GoalNotStored => "goal_not_stored",
            Warning::GuardrailDenied => "guardrail_denied",
            Warning::GuardrailFailed => "guardrail_failed",
            Warning::CommandRefused => "command_refused",
            Warning::CommandRisky => "command_risky",
            Warning::CircuitOpened => "circuit_opened",
            Warning::ConcurrencyFixed => "concurrency_fixed",
            Warning::SectionOff => "section_off",
            Warning::EmptyReply => "empty_reply",
            Warning::UsageUnreported => "usage_unreported",
        }
    }
}

/// Warnings that came up while something was made, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings(Vec<(Warning, String)>);

impl Warnings {
    /// None yet.
    pub fn new() -> Self {
        Warnings::default()
    }

    /// Adds one. `message` holds no secrets.
    pub fn add(&mut self, warning: Warning, message: impl Into<String>) {
        self.0.push((warning, message.into()));
    }

    /// The others, without those about `which`.
    #[must_use]
    pub fn without(mut self, which: Warning) -> Self {
        self.0.retain(|(warning, _)| *warning != which);
        self
    }

    /// Adds those of another list.
    pub fn extend(&mut self, more: Warnings) {
        self.0.extend(more.0);
    }

    /// The warnings.
    pub fn iter(&self) -> impl Iterator<Item = (Warning, &str)> {
        self.0
            .iter()
            .map(|(warning, message)| (*warning, &**message))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
