//! The middleware chain: the trait, its six hooks, and the ordered list of what is in it.
//!
//! Index 0 is outermost (EX-2). `before_agent` and `before_model` run in list order, `after_model` and `after_agent` in
//! reverse; `wrap_model_call` and `wrap_tool_call` nest, index 0 outside. Each before/after hook is a step of its own: its
//! writes are reduced and the next hook sees them (EX-3). Wrap hooks change the request, which is never stored (EX-9).

mod agent_path;
pub mod authorization_gate;
mod bounded;
mod call_set;
pub mod catalog;
pub mod clarification;
pub mod dangling_tool_call;
pub mod deferred_tool_filter;
pub mod durable_context;
pub mod dynamic_context;
mod filtered_lists;
pub mod guardrail_provider;
mod guardrail_record;
mod hard_stop;
pub mod host_middleware;
pub mod input_sanitization;
pub mod llm_error_handling;
pub mod loop_detection;
pub mod mcp_routing;
pub mod memory;
pub mod model_length;
pub mod read_before_write;
mod refusal;
mod remembered;
mod reply;
mod request;
pub mod run_sandboxes;
pub mod safety_finish_reason;
pub mod sandbox;
pub mod sandbox_audit;
pub mod skill_activation;
pub mod skill_tool_policy;
#[cfg(test)]
mod stage;
mod subagent_chain;
pub mod subagent_date;
pub mod subagent_limit;
pub mod summarization;
pub mod system_message_coalescing;
pub mod terminal_response;
mod termination;
#[cfg(test)]
mod testing;
pub mod thread_data;
pub mod title;
pub mod todo;
pub mod token_budget;
pub mod token_usage;
mod tool_contents;
pub mod tool_error_handling;
pub mod tool_output_budget;
pub mod tool_progress;
mod tool_result_class;
pub mod tool_result_sanitization;
mod turns;
pub mod uploads;
pub mod view_image;

use std::sync::Arc;

use serde_json::{Map, Value};

use authorization_gate::AuthorizationGate;
use clarification::Clarification;
use deferred_tool_filter::DeferredToolFilter;
use durable_context::{DurableContext, DurableContextConfig};
use dynamic_context::{DynamicContext, DynamicContextConfig};
use guardrail_provider::Guardrail;
use host_middleware::HostMiddleware;
use input_sanitization::InputSanitization;
use llm_error_handling::LlmErrorHandling;
use loop_detection::LoopDetection;
use mcp_routing::RoutePromotion;
use memory::Memory;
use model_length::ModelLength;
use read_before_write::{FileTurns, ReadBeforeWrite};
use run_sandboxes::RunSandboxes;
use safety_finish_reason::SafetyFinishReason;
use sandbox::Sandbox as SandboxMiddleware;
use sandbox_audit::SandboxAudit;
use skill_activation::SkillActivation;
use skill_tool_policy::SkillToolPolicy;
use subagent_limit::{SubagentLimit, SubagentLimitConfig};
use summarization::{Summarization, SummaryModels};
use system_message_coalescing::SystemMessageCoalescing;
use terminal_response::TerminalResponse;
use thread_data::ThreadData;
use title::Title;
use todo::Todo;
use token_budget::TokenBudget;
use token_usage::TokenUsage;
use tool_error_handling::{ToolErrorHandling, ToolErrorHandlingConfig};
use tool_output_budget::ToolOutputBudget;
use tool_progress::ToolProgress;
use tool_result_sanitization::ToolResultSanitization;
use uploads::{UploadTools, Uploads};
use view_image::ViewImage;

use crate::ports::BoxFuture;
use crate::ports::authorization::Principal;
use crate::ports::host::RunContext;
pub use crate::ports::host::RunFacts;
use crate::ports::memory_policy::MemoryAccess;
use crate::ports::memory_queue::MemoryQueue;
use crate::ports::model::{DynModelProvider, ModelError, ModelReply, ModelRequest, Purpose};
use crate::ports::sandbox::Sandbox;
use crate::ports::thread_files::ThreadFiles;
use crate::ports::tool::{DynTool, ToolInvocation, ToolOutcome};
use crate::protocol::app_config::{
    AppConfig, CircuitBreakerConfig, Feature as _, GuardrailsConfig, LoopDetectionConfig,
    SummarizationConfig, TitleConfig, TokenBudgetConfig, ToolOutputConfig, ToolProgressConfig,
};
use crate::protocol::assembly::MiddlewareConfig;
use crate::protocol::decode::{from_value, unknown_member};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::{Fields, Kind, Message};
use crate::protocol::request_secrets::RequestSecrets;
use crate::protocol::trust::SystemText;
use crate::skills::library::SkillAccess;
use crate::state::View;
use crate::state::channels::Channel;
pub use crate::state::message_marks::is_error_fallback;
use crate::state::reads::ChannelReads;
use crate::state::update::StateUpdate;
pub(crate) use crate::state::{message_marks, user_message};
use crate::tools::arguments::KnownTools;
use crate::tools::deferred::DeferredTools;

pub use reply::error_of_fallback;
pub(crate) use reply::{has_visible_content, with_calls};
pub use subagent_chain::{SUBAGENT_CHAIN, SubagentPlace, compose_subagent};

/// One place in the chain.
pub struct Place {
    /// Name of the middleware that stands there.
    pub name: &'static str,
    /// Makes it for a lead agent; `None` when its feature is off there.
    lead: Lead,
    /// Makes it from settings, for agents that name their middleware. `None` where it only makes sense in a lead agent.
    outright: Option<Outright>,
}

/// Makes a middleware of a lead agent.
type Lead = fn(&mut ChainInputs<'_>) -> Result<Option<Arc<dyn Middleware>>, Error>;
/// Makes a middleware from settings.
type Outright = fn(Map<String, Value>) -> Result<Arc<dyn Middleware>, Error>;

/// The chain, outermost first, and why each stands where it stands (DeerFlow MC-1 to MC-5).
pub const CHAIN: &[Place] = &[
    // Outermost, so that everything inside, retries too, sees what the user wrote as data.
    Place {
        name: "input_sanitization",
        lead: |_| there(InputSanitization::new()),
        outright: Some(|settings| plain(settings, InputSanitization::new)),
    },
    // Outside of what neutralises results, so that a cut cannot make a tag (MW-TRS-3).
    Place {
        name: "tool_output_budget",
        lead: |inputs| {
            let (files, sandbox) = inputs.files();
            there(ToolOutputBudget::new(
                &inputs.app.tool_output,
                files,
                sandbox,
            ))
        },
        outright: Some(|settings| {
            let config: ToolOutputConfig = from_value(Value::Object(settings))?;
            config.validate()?;
            made(ToolOutputBudget::new(&config, None, None))
        }),
    },
    // Outside of whatever rewrites results, so that nothing from outside gets in after it.
    Place {
        name: "tool_result_sanitization",
        lead: |inputs| {
            let remote = std::mem::take(&mut inputs.remote_tools);
            there(ToolResultSanitization::new(remote))
        },
        outright: Some(|settings| plain(settings, || ToolResultSanitization::new([]))),
    },
    // Before whatever reads where a thread's files stand.
    Place {
        name: "thread_data",
        lead: |inputs| there(ThreadData::new(inputs.thread_files.clone(), true)),
        outright: Some(|settings| plain(settings, || ThreadData::new(None, true))),
    },
    // Before whatever injects beside the user's message, which it changes.
    Place {
        name: "uploads",
        lead: |inputs| {
            let tools = UploadTools::of(inputs.tools);
            there(Uploads::new(inputs.thread_files.clone(), tools))
        },
        outright: Some(|settings| plain(settings, || Uploads::new(None, UploadTools::default()))),
    },
    // Outside of whatever may refuse a call or look into a sandbox for it, so that it is there for them.
    Place {
        name: "sandbox",
        lead: |inputs| {
            let lazy = inputs.app.sandbox.lazy_init.unwrap_or(true);
            let port = inputs.sandbox.clone();
            let part = port.map(|port| SandboxMiddleware::new(port, lazy, inputs.tools));
            part.map_or(Ok(None), there)
        },
        outright: None,
    },
    // Repairs the transcript that all others leave behind.
    Place {
        name: "dangling_tool_call",
        lead: |_| Ok(Some(dangling_tool_call::new())),
        outright: Some(|settings| {
            no_settings(&settings)?;
            Ok(dangling_tool_call::new())
        }),
    },
    // Inside of the repair, so that it passes on what the model is to see; outside of all that has words for one call only.
    Place {
        name: "llm_error_handling",
        lead: |inputs| {
            let retries = inputs.app.llm_call.clone();
            there(LlmErrorHandling::new(
                inputs.app.circuit_breaker.clone(),
                Some(retries),
            ))
        },
        outright: Some(|settings| {
            let config: CircuitBreakerConfig = from_value(Value::Object(settings))?;
            config.validate()?;
            made(LlmErrorHandling::new(config, None))
        }),
    },
    // Outside of the handling of errors: a refusal is no failure of the tool.
    Place {
        name: "guardrail",
        lead: |inputs| inputs.gate.take().map_or(Ok(None), there),
        outright: None,
    },
    // Inside of the authorization: what that denies, nobody else is asked about (MW-GRD-4).
    Place {
        name: guardrail_provider::NAME,
        lead: |inputs| {
            let section = &inputs.app.guardrails;
            let guardrail = Guardrail::of_section(section, inputs.principal.take());
            let guardrail = guardrail.map_err(|error| error.below("/guardrails"))?;
            guardrail.map_or(Ok(None), there)
        },
        outright: Some(guardrail_of_settings),
    },
    // After those who know the caller: what a command says counts for everybody.
    Place {
        name: "sandbox_audit",
        lead: |_| there(SandboxAudit),
        outright: Some(|settings| plain(settings, || SandboxAudit)),
    },
    // Inside of whoever refuses a call: what does not run holds up no other call.
    Place {
        name: "read_before_write",
        lead: |inputs| {
            let (files, sandbox) = inputs.files();
            match inputs.app.read_before_write.is_enabled() {
                true => {
                    there(ReadBeforeWrite::new(files, sandbox).taking(inputs.file_turns.clone()))
                }
                false => Ok(None),
            }
        },
        // Without files of its own there is nothing that it could look at.
        outright: None,
    },
    // Next to the classes that it reads (MC-4).
    Place {
        name: "tool_progress",
        lead: |inputs| {
            let section = &inputs.app.tool_progress;
            let on = section
                .is_enabled()
                .then(|| ToolProgress::new(section.clone()));
            on.map_or(Ok(None), there)
        },
        // Whoever names it wants it.
        outright: Some(|mut settings| {
            settings.entry("enabled").or_insert(Value::Bool(true));
            let config: ToolProgressConfig = from_value(Value::Object(settings))?;
            config.validate()?;
            made(ToolProgress::new(config))
        }),
    },
    // Classifies what the tool itself did, before anything outside changes it.
    Place {
        name: "tool_error_handling",
        lead: |inputs| {
            let section = &inputs.app.summarization;
            let config = ToolErrorHandlingConfig {
                skill_file_read_tool_names: section.skill_file_read_tool_names.clone(),
                skills_container_path: inputs.app.skills.container_path.as_str().to_owned(),
            };
            there(ToolErrorHandling::new(config, skill_description))
        },
        outright: Some(|settings| {
            plain(settings, || {
                ToolErrorHandling::new(ToolErrorHandlingConfig::default(), skill_description)
            })
        }),
    },
    // First of the hooks that add to a thread: the date belongs to the user's message.
    Place {
        name: "dynamic_context",
        lead: |inputs| {
            let config = DynamicContextConfig {
                memory_injection_enabled: inputs.app.memory.injection_enabled,
                ..DynamicContextConfig::default()
            };
            there(DynamicContext::new(config, inputs.memory.clone(), None))
        },
        outright: None,
    },
    // Inside of what frames the user's message, and before the policy that goes by the skill it activates (MC-4).
    Place {
        name: "skill_activation",
        lead: |inputs| {
            let Some(access) = inputs.skills.clone() else {
                return Ok(None);
            };
            let secrets = std::mem::take(&mut inputs.secrets);
            there(SkillActivation::new(access, secrets))
        },
        // The folders of skills are the lead agent's.
        outright: None,
    },
    // Right inside of the activation, and outside of what finds and promotes tools.
    Place {
        name: "skill_tool_policy",
        lead: |inputs| {
            let access = inputs.skills.take();
            access.map(SkillToolPolicy::new).map_or(Ok(None), there)
        },
        outright: None,
    },
    // Notes what has to outlive a summary before one takes it away; after a reply, what the guards further in have left of it
    // (LIM-19).
    Place {
        name: "durable_context",
        lead: |inputs| {
            let section = &inputs.app.summarization;
            there(DurableContext::new(DurableContextConfig {
                skill_file_read_tool_names: section.skill_file_read_tool_names.clone(),
                skills_container_path: inputs.app.skills.container_path.as_str().to_owned(),
            }))
        },
        outright: Some(|settings| made(DurableContext::new(from_value(Value::Object(settings))?))),
    },
    // Before whatever looks for something that a summary may have taken away.
    Place {
        name: "summarization",
        lead: |inputs| {
            let Some(models) = inputs.summary_models.take() else {
                return Ok(None);
            };
            let config = inputs.app.summarization.clone();
            let made = Summarization::new(config, models, Vec::new());
            there(made.map_err(|error| error.below("/summarization"))?)
        },
        outright: Some(|settings| {
            let config: SummarizationConfig = from_value(Value::Object(settings))?;
            config.validate()?;
            made(Summarization::outright(config)?)
        }),
    },
    // After the compaction of a thread, whose reminder it brings back.
    Place {
        name: "todo",
        lead: |inputs| inputs.plan_mode.then(Todo::new).map_or(Ok(None), there),
        outright: Some(|settings| plain(settings, Todo::new)),
    },
    // After the guards, whose changes it labels.
    Place {
        name: "token_usage",
        lead: |inputs| {
            let section = &inputs.app.token_usage;
            let on = section.is_enabled().then(|| TokenUsage::new(section));
            on.map_or(Ok(None), there)
        },
        outright: Some(|settings| made(TokenUsage::new(&from_value(Value::Object(settings))?))),
    },
    // Looks at a whole first exchange.
    Place {
        name: "title",
        lead: |inputs| {
            let section = &inputs.app.title;
            let model = inputs.title_model.take();
            let on = section
                .is_enabled()
                .then(|| Title::new(section.clone(), model));
            on.map_or(Ok(None), there)
        },
        outright: Some(|settings| {
            let config: TitleConfig = from_value(Value::Object(settings))?;
            config.validate()?;
            made(Title::new(config, None))
        }),
    },
    // At the end of a run, with all that the others have written.
    Place {
        name: "memory",
        lead: |inputs| match (&inputs.memory, &inputs.memory_queue) {
            (Some(access), Some(queue)) => there(Memory::new(access.clone(), queue.clone())),
            _ => Ok(None),
        },
        outright: None,
    },
    // Inside of whatever repairs or counts a transcript: what it adds is of one request.
    Place {
        name: "view_image",
        lead: |inputs| {
            let files = inputs.thread_files.clone().filter(|_| inputs.vision);
            files.map(ViewImage::new).map_or(Ok(None), there)
        },
        outright: None,
    },
    // Promotes before the filter hides (MC-4).
    Place {
        name: "mcp_routing",
        lead: |inputs| {
            let Some(deferred) = &inputs.deferred else {
                return Ok(None);
            };
            let top_k = inputs.app.tool_search.auto_promote_top_k;
            let top_k = usize::try_from(top_k).unwrap_or(mcp_routing::MAX_TOP_K);
            RoutePromotion::new(inputs.tools, deferred, top_k).map_or(Ok(None), there)
        },
        outright: None,
    },
    // Inside of everything that could add tools to a request.
    Place {
        name: "deferred_tool_filter",
        lead: |inputs| {
            let deferred = inputs.deferred.take();
            deferred
                .map(DeferredToolFilter::new)
                .map_or(Ok(None), there)
        },
        outright: None,
    },
    // Innermost of what adds system text: providers take one (P9).
    Place {
        name: "system_message_coalescing",
        lead: |_| there(SystemMessageCoalescing::new()),
        outright: Some(|settings| plain(settings, SystemMessageCoalescing::new)),
    },
    // From here on inwards: what a reply may do. After a reply the innermost speaks first, so that each sees what the
    // stricter one left (MC-1).
    Place {
        name: "subagent_limit",
        lead: |inputs| {
            let limits = inputs.subagent_limits.take();
            limits.map(SubagentLimit::new).map_or(Ok(None), there)
        },
        outright: Some(|settings| made(SubagentLimit::from_settings(settings)?)),
    },
    Place {
        name: "loop_detection",
        lead: |inputs| {
            let section = &inputs.app.loop_detection;
            let on = section
                .is_enabled()
                .then(|| LoopDetection::new(section.clone()));
            on.map_or(Ok(None), there)
        },
        outright: Some(|settings| {
            let config: LoopDetectionConfig = from_value(Value::Object(settings))?;
            config.validate()?;
            made(LoopDetection::new(config))
        }),
    },
    Place {
        name: "token_budget",
        lead: |inputs| {
            let section = inputs.token_budget.as_ref();
            let section = section.unwrap_or(&inputs.app.token_budget);
            let on = section
                .is_enabled()
                .then(|| TokenBudget::new(section.clone()));
            on.map_or(Ok(None), there)
        },
        // Whoever names it wants it, so that it is on unless the settings say otherwise (FA-6 is inert here).
        outright: Some(|mut settings| {
            settings.entry("enabled").or_insert(Value::Bool(true));
            let config: TokenBudgetConfig = from_value(Value::Object(settings))?;
            config.validate()?;
            made(TokenBudget::new(config))
        }),
    },
    Place {
        name: "terminal_response",
        lead: |_| there(TerminalResponse::new()),
        outright: Some(|settings| plain(settings, TerminalResponse::new)),
    },
    Place {
        name: "model_length",
        lead: |_| there(ModelLength::new()),
        outright: Some(|settings| plain(settings, ModelLength::new)),
    },
    // First to see a reply: nothing of one that was cut for safety counts for the others.
    Place {
        name: "safety_finish_reason",
        lead: |inputs| {
            let section = &inputs.app.safety_finish_reason;
            match section.is_enabled() {
                true => there(
                    SafetyFinishReason::new(section)
                        .map_err(|error| error.below("/safety_finish_reason"))?,
                ),
                false => Ok(None),
            }
        },
        outright: Some(|settings| {
            made(SafetyFinishReason::new(&from_value(Value::Object(
                settings,
            ))?)?)
        }),
    },
    // Always last, so that nothing inside runs the tool whose call it takes (MC-4).
    Place {
        name: "clarification",
        lead: |inputs| there(Clarification::beside(inputs.tools)),
        // Whoever names it gives it the calls, whatever tool there is: such a chain has no other.
        outright: Some(|settings| plain(settings, Clarification::new)),
    },
];

fn there(middleware: impl Middleware) -> Result<Option<Arc<dyn Middleware>>, Error> {
    Ok(Some(Arc::new(middleware)))
}

fn made(middleware: impl Middleware) -> Result<Arc<dyn Middleware>, Error> {
    Ok(Arc::new(middleware))
}

/// The guardrail of an agent that names it. Whoever names it wants it, and there is none that asks nobody.
fn guardrail_of_settings(mut settings: Map<String, Value>) -> Result<Arc<dyn Middleware>, Error> {
    settings.insert("enabled".to_owned(), Value::Bool(true));
    let section: GuardrailsConfig = from_value(Value::Object(settings))?;
    let nobody = "nothing says who is asked";
    match Guardrail::of_section(&section, None)? {
        Some(guardrail) => made(guardrail),
        None => Err(Error::at(ErrorCode::MissingMember, "/provider", nobody)),
    }
}

/// Makes a middleware that takes no settings.
fn plain<M: Middleware>(
    settings: Map<String, Value>,
    make: impl FnOnce() -> M,
) -> Result<Arc<dyn Middleware>, Error> {
    no_settings(&settings)?;
    made(make())
}

fn no_settings(settings: &Map<String, Value>) -> Result<(), Error> {
    match settings.keys().find(|name| !name.starts_with("x-")) {
        Some(name) => Err(unknown_member(name, &[])),
        None => Ok(()),
    }
}

/// What the chain of a lead agent is made from, or that of a subagent.
pub struct ChainInputs<'a> {
    /// The configuration.
    pub app: &'a AppConfig,
    /// Names of the tools whose results come from other machines.
    pub remote_tools: Vec<String>,
    /// The bound tools.
    pub tools: &'a [Arc<dyn DynTool>],
    /// The deferred ones, if any are.
    pub deferred: Option<DeferredTools>,
    /// The second layer of authorization, if it is on.
    pub gate: Option<AuthorizationGate>,
    /// For whom the agent works; without it, the context of a run says.
    pub principal: Option<Principal>,
    /// Whether the agent keeps a plan.
    pub plan_mode: bool,
    /// The right to touch memory, if the agent has any.
    pub memory: Option<MemoryAccess>,
    /// The memory that hears what runs say, if there is one.
    pub memory_queue: Option<Arc<dyn MemoryQueue>>,
    /// The files of the user's threads, if they are kept on this machine.
    pub thread_files: Option<Arc<dyn ThreadFiles>>,
    /// The sandboxes of the user's threads, if there are any. A subagent gets those of the agent that delegates.
    pub sandbox: Option<Arc<RunSandboxes>>,
    /// Turns at the files of the user's threads. A subagent gets those of the agent that delegates.
    pub file_turns: FileTurns,
    /// The tokens of a run; `None` for what the section `token_budget` says.
    pub token_budget: Option<TokenBudgetConfig>,
    /// Whether the model sees images.
    pub vision: bool,
    /// Who writes summaries, if long threads are summarised.
    pub summary_models: Option<SummaryModels>,
    /// The limits of delegation, if the agent may delegate.
    pub subagent_limits: Option<SubagentLimitConfig>,
    /// The model that makes titles, if one is configured.
    pub title_model: Option<OtherModel>,
    /// The skills that the agent may activate; `None` where there are no folders of skills.
    pub skills: Option<SkillAccess>,
    /// Secrets of the request for its skills.
    pub secrets: RequestSecrets,
}

impl<'a> ChainInputs<'a> {
    /// Those of an agent with nothing but the configuration.
    pub fn new(app: &'a AppConfig) -> Self {
        ChainInputs {
            app,
            remote_tools: Vec::new(),
            tools: &[],
            deferred: None,
            gate: None,
            principal: None,
            plan_mode: false,
            memory: None,
            memory_queue: None,
            thread_files: None,
            sandbox: None,
            file_turns: FileTurns::default(),
            token_budget: None,
            vision: false,
            summary_models: None,
            subagent_limits: None,
            title_model: None,
            skills: None,
            secrets: RequestSecrets::default(),
        }
    }
}

/// Where the files are that an agent's tools work on: on this machine, in a sandbox, in both.
type AgentFiles = (Option<Arc<dyn ThreadFiles>>, Option<Arc<dyn Sandbox>>);

impl ChainInputs<'_> {
    fn files(&self) -> AgentFiles {
        let sandbox = self.sandbox.clone();
        let sandbox = sandbox.map(|sandbox| sandbox as Arc<dyn Sandbox>);
        (self.thread_files.clone(), sandbox)
    }
}

/// Composes the chain of a lead agent.
///
/// # Errors
/// Those of the sections that a middleware reads, below their names.
pub fn compose(mut inputs: ChainInputs<'_>) -> Result<Vec<Arc<dyn Middleware>>, Error> {
    #[cfg(test)]
    COMPOSED.with(|count| count.set(count.get() + 1));
    let places = CHAIN.iter();
    places
        .filter_map(|place| (place.lead)(&mut inputs).transpose())
        .collect()
}

#[cfg(test)]
thread_local! {
    /// How often a chain was composed on this OS thread (EP-11).
    pub(crate) static COMPOSED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// The description in the front matter of a SKILL.md.
fn skill_description(text: &str) -> Option<String> {
    crate::skills::parse::description(text)
}

/// The middleware that a configuration names, or that the host is.
///
/// # Errors
/// `UnknownVariant` for a name that none has, `Unsupported` for one that only a lead agent has, and those of its settings. `Conflict` when one of the host's takes the name of another.
pub fn by_name(config: &MiddlewareConfig) -> Result<Arc<dyn Middleware>, Error> {
    if let Some(host) = &config.host {
        let name = config.name.as_str();
        if CHAIN.iter().any(|place| place.name == name) {
            return Err(Error::at(
                ErrorCode::Conflict,
                "/name",
                format!("{name:?} is the name of a middleware of this library; give yours another"),
            ));
        }
        return HostMiddleware::new(name, (**host).clone())
            .map_err(|error| error.below("/host"))
            .and_then(made);
    }
    let outright = CHAIN
        .iter()
        .find(|place| place.name == config.name)
        .and_then(|place| place.outright);
    match outright {
        Some(make) => make(config.settings.clone()),
        None if CHAIN.iter().any(|place| place.name == config.name) => Err(Error::at(
            ErrorCode::Unsupported,
            "",
            format!(
                "the middleware {:?} cannot be named here: only a lead agent has it",
                config.name
            ),
        )),
        None => {
            let known: Vec<String> = CHAIN
                .iter()
                .filter(|place| place.outright.is_some())
                .map(|place| format!("{:?}", place.name))
                .collect();
            Err(Error::at(
                ErrorCode::UnknownVariant,
                "",
                format!(
                    "there is no middleware {:?}; there are {}",
                    config.name,
                    known.join(", ")
                ),
            ))
        }
    }
}

/// Checks what the order of a chain must hold whoever made it (MC-4).
///
/// # Errors
/// `AssemblyInvalid` at the middleware that stands wrong.
pub fn check_order(chain: &[Arc<dyn Middleware>]) -> Result<(), Error> {
    let place = |name: &str| chain.iter().position(|part| part.name() == name);
    match (place("tool_error_handling"), place("tool_progress")) {
        (Some(outer), Some(inner)) if outer < inner => Err(Error::at(
            ErrorCode::AssemblyInvalid,
            format!("/middleware/{inner}"),
            "\"tool_progress\" reads what \"tool_error_handling\" says of results, so it must stand outside of it",
        )),
        _ => Ok(()),
    }
}

/// One of the four hooks that look at the state and write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hook {
    /// Once, before the loop.
    BeforeAgent,
    /// Before each model call.
    BeforeModel,
    /// After each model call.
    AfterModel,
    /// Once, after the loop.
    AfterAgent,
}

impl Hook {
    /// Name, as in LangChain.
    pub const fn name(self) -> &'static str {
        match self {
            Hook::BeforeAgent => "before_agent",
            Hook::BeforeModel => "before_model",
            Hook::AfterModel => "after_model",
            Hook::AfterAgent => "after_agent",
        }
    }
}

/// Which hooks a middleware has, so that the others cost nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// `before_agent`.
    pub before_agent: bool,
    /// `before_model`.
    pub before_model: bool,
    /// `after_model`.
    pub after_model: bool,
    /// `after_agent`.
    pub after_agent: bool,
    /// `wrap_model_call`.
    pub wrap_model_call: bool,
    /// `wrap_tool_call`.
    pub wrap_tool_call: bool,
}

/// Where a hook sends the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// To the entry of the loop: the first `before_model` hook. The rest of this pass is skipped (EX-4).
    Model,
    /// To the tool calls of the last ai message.
    Tools,
    /// To the end: `after_agent`.
    End,
}

impl Jump {
    /// Name in the channel `jump_to`.
    pub const fn name(self) -> &'static str {
        match self {
            Jump::Model => "model",
            Jump::Tools => "tools",
            Jump::End => "end",
        }
    }
}

/// What a hook asks the outside for. The driver does it; the hook runs again with the answer.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A model call of the middleware's own; nobody sees its deltas.
    CallModel(Box<Question>),
    /// Work on a port: files, a sandbox, the host.
    Perform(Work),
}

/// Work that a hook wants done outside of it. Cancelling the run drops the future that it makes.
#[derive(Clone)]
pub struct Work(Arc<Job>);

type Job = dyn Fn(Arc<RunContext>) -> BoxFuture<'static, Result<Value, Error>> + Send + Sync;

impl Work {
    /// Work that `job` does, given the run on whose behalf it is done. Its value is what the hook gets as the answer.
    pub fn new<F>(job: impl Fn(Arc<RunContext>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Value, Error>> + Send + 'static,
    {
        Work(Arc::new(move |run| Box::pin(job(run))))
    }

    /// Begins the work.
    pub fn begin(&self, run: Arc<RunContext>) -> BoxFuture<'static, Result<Value, Error>> {
        (self.0)(run)
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Work")
    }
}

/// What a middleware asks a model on its own account, without tools.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// System text.
    pub system: Option<SystemText>,
    /// The messages.
    pub messages: Vec<Message>,
    /// Whom to ask; `None` asks the run's model.
    pub model: Option<OtherModel>,
}

impl Question {
    /// A question in words, put as a person's message.
    pub fn new(prompt: impl Into<String>, model: Option<OtherModel>) -> Self {
        Question {
            system: None,
            messages: vec![Message::new(Fields::new(Kind::Human, prompt.into()))],
            model,
        }
    }

    /// The request that a driver makes of it, and the model to make it to, unless that is the run's.
    pub fn into_request(self, run: Arc<RunContext>) -> (ModelRequest, Option<OtherModel>) {
        let request = ModelRequest {
            purpose: Purpose::Middleware,
            system: self.system,
            preamble: None,
            messages: Arc::new(self.messages.into()),
            tools: Arc::new([]),
            tool_choice: None,
            attempt: 0,
            reads: ChannelReads::default(),
            run,
        };
        (request, self.model)
    }
}

/// A model besides the run's, for the questions of middleware.
#[derive(Clone)]
pub struct OtherModel {
    /// What the configuration calls it.
    pub name: Arc<str>,
    /// Answers the requests.
    pub provider: Arc<dyn DynModelProvider>,
}

impl std::fmt::Debug for OtherModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OtherModel").field(&self.name).finish()
    }
}

/// The answer to an [`Effect`].
#[derive(Clone, Debug)]
pub enum EffectAnswer {
    /// The reply, or why there is none.
    Model(Box<Result<ModelReply, ModelError>>),
    /// What the work came to.
    Performed(Box<Result<Value, Error>>),
}

/// What a hook decides.
#[derive(Clone, Debug, Default)]
pub enum HookOutput {
    /// Go on.
    #[default]
    Continue,
    /// Write this, then go on.
    Update(StateUpdate),
    /// Write this, then jump.
    Jump(Jump, StateUpdate),
    /// Ask, and run this hook again with the answer.
    Await(Effect),
}

/// What a hook sees.
pub struct HookContext<'a> {
    /// The state as the previous hook left it.
    pub state: View<'a>,
    /// Facts of the run.
    pub run: &'a RunFacts,
    /// The answer to what this hook asked for, when it runs again.
    pub answer: Option<&'a EffectAnswer>,
}

impl<'a> HookContext<'a> {
    /// What a model said to the question of this hook.
    pub fn reply(&self) -> Option<&'a Result<ModelReply, ModelError>> {
        match self.answer? {
            EffectAnswer::Model(reply) => Some(reply),
            EffectAnswer::Performed(_) => None,
        }
    }

    /// What the work that this hook asked for came to.
    pub fn performed(&self) -> Option<&'a Result<Value, Error>> {
        match self.answer? {
            EffectAnswer::Performed(result) => Some(result),
            EffectAnswer::Model(_) => None,
        }
    }
}

/// A reply with the writes that wrappers add to the state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelResponse {
    /// The reply.
    pub reply: ModelReply,
    /// Writes besides the ai message, in order.
    pub updates: Vec<StateUpdate>,
    /// Whether the run ends with this reply: the hooks after the model are passed by.
    pub ends_run: bool,
}

impl From<ModelReply> for ModelResponse {
    fn from(reply: ModelReply) -> Self {
        ModelResponse {
            reply,
            ..ModelResponse::default()
        }
    }
}

impl ModelResponse {
    /// A reply after which the run ends; its calls are dropped.
    pub fn ending(reply: ModelReply) -> Self {
        ModelResponse {
            reply: ModelReply {
                tool_calls: Vec::new(),
                ..reply
            },
            updates: Vec::new(),
            ends_run: true,
        }
    }
}

/// The rest of a model call, inside a wrapper. It may be run any number of times.
pub trait NextModel: Send {
    /// Passes the request on.
    fn run(&mut self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, ModelError>>;
}

/// Who calls the tool, inside all wrappers.
pub trait CallTool: Send + Sync {
    /// Calls the tool.
    fn call(&self, invocation: ToolInvocation) -> BoxFuture<'_, ToolOutcome>;
}

/// The rest of a tool call, inside a wrapper. It may be run any number of times; a wrapper that has nothing to do with a call
/// returns what this gives, and then takes neither time nor room while the tool works.
#[derive(Clone, Copy)]
pub struct NextTool<'a> {
    wrappers: &'a [Arc<dyn Middleware>],
    tools: &'a dyn CallTool,
}

impl<'a> NextTool<'a> {
    /// These wrappers, from the outermost in, around `tools`.
    pub fn new(wrappers: &'a [Arc<dyn Middleware>], tools: &'a dyn CallTool) -> Self {
        NextTool { wrappers, tools }
    }

    /// Passes the call on.
    pub fn run(self, invocation: ToolInvocation) -> BoxFuture<'a, ToolOutcome> {
        match self.wrappers.split_first() {
            Some((outer, inner)) => {
                outer.wrap_tool_call(invocation, NextTool::new(inner, self.tools))
            }
            None => self.tools.call(invocation),
        }
    }
}

/// One part of the chain. Hooks are pure: they look, and answer with writes; an error ends the run.
pub trait Middleware: Send + Sync + 'static {
    /// Name, unique in the chain; part of events and errors.
    fn name(&self) -> &str;

    /// Which hooks it has.
    fn hooks(&self) -> Hooks;

    /// What a descriptor says about its settings: JSON data, nothing secret. Long texts are given as hashes (AD-16).
    fn policy(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Channels that its wrap hooks read: their values come with each request (`ModelRequest::reads`) and each call
    /// (`ToolInvocation::reads`), because wrap hooks run while nobody holds the state. `messages` come with calls only, since
    /// a request has its own. What nobody names is not copied.
    fn reads(&self) -> &[Channel] {
        &[]
    }

    /// Whether it asks the host, so that a run with it needs a queue.
    fn asks_host(&self) -> bool {
        false
    }

    /// Who brought it, when it is none of this library's.
    fn extension(&self) -> Option<&'static str> {
        None
    }

    /// Tools that it brings; they are bound after those of the agent (AD-13).
    fn tools(&self) -> &[Arc<dyn DynTool>] {
        &[]
    }

    /// Hears which tools the agent has that it has become a part of. Called once, before any run.
    fn bound(&self, tools: &Arc<KnownTools>) {
        let _ = tools;
    }

    /// Hears of tools that the agent was not given, and that whoever configured it may speak of all the same.
    fn heard_of(&self, names: &[&str]) {
        let _ = names;
    }

    /// Runs one of the four state hooks.
    ///
    /// # Errors
    /// Whatever makes it impossible to go on; the run ends with it and nothing of this hook is written.
    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        let _ = (hook, context);
        Ok(HookOutput::Continue)
    }

    /// Wraps a model call.
    fn wrap_model_call<'a>(
        &'a self,
        request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        next.run(request)
    }

    /// Wraps one tool call.
    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        next.run(invocation)
    }
}

/// What the user asked for last, in their words.
pub(crate) fn asked_for(state: View<'_>) -> Option<String> {
    let mut newest_first = state.messages().rev();
    let message = newest_first.find(|message| user_message::is_real(message))?;
    Some(user_message::original_text(message).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_makes_the_middleware_of_its_name() {
        let app = AppConfig::default();
        let mut inputs = ChainInputs {
            plan_mode: true,
            summary_models: Some(SummaryModels::default()),
            subagent_limits: Some(SubagentLimitConfig::default()),
            ..ChainInputs::new(&app)
        };
        for place in CHAIN {
            if let Some(middleware) = (place.lead)(&mut inputs).expect("a sound section") {
                assert_eq!(middleware.name(), place.name);
            }
            if let Some(Ok(middleware)) = place.outright.map(|make| make(Map::new())) {
                assert_eq!(middleware.name(), place.name);
            }
        }
    }
}
