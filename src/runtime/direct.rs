//! Direct agents of a runtime: plain arguments, and subagents if their features say so.

use std::sync::Arc;

use serde_json::Value;

use super::Runtime;
use super::assembly::{Assembly, Given, check_host_tools};
use super::family::{Family, Parent, ParentModel, ReadyDelegate};
use super::subagents::{Subagents, direct_limits};
use crate::adapters::host_tool::HostTool;
use crate::agent::direct;
use crate::agent::subagent_scope::SubagentScope;
use crate::agent::subagent_settings::SubagentSettings;
use crate::agent::tool_list::{self, ConfiguredTool};
use crate::middleware::guardrail_provider;
use crate::middleware::read_before_write::FileTurns;
use crate::ports::tool::DynTool;
use crate::protocol::app_config::AppConfig;
use crate::protocol::assembly::{DirectConfig, Feature};
use crate::protocol::config::ModelRef;
use crate::protocol::decode::from_value;
use crate::protocol::error::Error;
use crate::protocol::warning::Warnings;
use crate::subagents::definition::Registry;
use crate::tools::{BuiltinInputs, ask_clarification, task};

impl Runtime {
    /// The factory `direct`.
    pub(super) fn assemble_direct(
        &self,
        config: DirectConfig,
        subagents: Option<Subagents>,
    ) -> Result<Assembly, Error> {
        let mut warnings = Warnings::new();
        let (mut brought, mut asks_host) = (Vec::new(), false);
        // FA-5: the tools belong to the factory's chain; tools of the host's of their names win.
        let is_free = |name: &str| {
            config.middleware.is_none() && config.tools.iter().all(|tool| tool.name != name)
        };
        if config.delegates() && is_free(task::NAME) {
            let delegation = self.direct_delegation(&config, subagents.as_ref(), &mut warnings)?;
            if let Some((delegate, children_ask)) = delegation {
                brought.push(Arc::new(task::TaskTool::new(delegate)) as Arc<dyn DynTool>);
                asks_host = children_ask;
            }
        }
        if is_free(ask_clarification::NAME) {
            brought.extend(ask_clarification::build(&BuiltinInputs::default()));
        }
        let taken = [
            (ask_clarification::NAME, true),
            (task::NAME, config.delegates()),
        ];
        for (name, is_ours) in taken {
            if is_ours && config.middleware.is_none() && config.has_tool(name) {
                tool_list::replaced(name, &mut warnings);
            }
        }
        let middleware = direct::chain(&config, direct_limits(subagents.as_ref()))?;
        let tools = || {
            let own = config.tools.iter().map(|tool| tool.name.as_str());
            own.chain(brought.iter().map(|tool| tool.spec().name.as_str()))
        };
        let list = config.middleware.iter().flatten();
        check_host_tools("/middleware", list, &middleware, tools())?;
        let list = config.extra_middleware.iter();
        let list = list.map(|extra| &extra.middleware);
        check_host_tools("/extra_middleware", list, &middleware, tools())?;
        let assembly = self.compose_given(Given {
            model: config.model,
            system_prompt: config.system_prompt,
            tools: config.tools,
            brought,
            asks_host,
            middleware,
            recursion_limit: config.recursion_limit,
            subagents,
        })?;
        self.0.logs.warn_all(&warnings);
        Ok(assembly)
    }

    /// Who runs the subagents of a direct agent. They have its model and the tools that it was given; which there are, and what
    /// guards them, the configuration of the runtime says (RT-10).
    fn direct_delegation(
        &self,
        config: &DirectConfig,
        subagents: Option<&Subagents>,
        warnings: &mut Warnings,
    ) -> Result<Option<ReadyDelegate>, Error> {
        let scope = self.0.lead.clone();
        let app = guarded(scope.shared_app(), config)?;
        let tools = config.tools.iter().map(|tool| ConfiguredTool {
            group: None,
            tool: Arc::new(HostTool::new(tool.clone())),
        });
        let tools: Arc<[ConfiguredTool]> = tools.collect();
        let registry = Arc::new(Registry::of(&app));
        let settings = SubagentSettings {
            app: &app,
            at: "",
            registry: &registry,
            scope: &SubagentScope::All,
            agent: None,
            tools: &tools,
        };
        settings.check(warnings);
        let parent = Parent {
            scope,
            app,
            model: match &config.model {
                ModelRef::Named(name) => ParentModel::Named(name.clone()),
                ModelRef::Inline(entry) => ParentModel::Given(entry.clone()),
            },
            tools,
            groups: None,
            is_lead: false,
            access: None,
            principal: None,
            skills: None,
            thread_files: None,
            sandbox: None,
            file_turns: FileTurns::default(),
            described: None,
            told: Warnings::new(),
        };
        let family = Family::new(self, parent, registry, SubagentScope::All)?;
        Ok(family.map(|family| self.delegation(family, subagents, warnings)))
    }
}

/// The configuration for the subagents of a direct agent: who guards the agent's calls guards theirs, or a subagent could do what
/// its agent may not.
fn guarded(app: &Arc<AppConfig>, config: &DirectConfig) -> Result<Arc<AppConfig>, Error> {
    let feature = config
        .features
        .as_ref()
        .and_then(|it| it.guardrail.as_ref());
    let settings = match feature {
        Some(Feature::With(settings)) => Some(settings),
        _ => {
            let mut extras = config.extra_middleware.iter();
            let extra = extras.find(|extra| extra.middleware.name == guardrail_provider::NAME);
            extra.map(|extra| &extra.middleware.settings)
        }
    };
    let Some(settings) = settings else {
        return Ok(app.clone());
    };
    let mut app = AppConfig::clone(app);
    app.guardrails = from_value(Value::Object(settings.clone()))?;
    app.guardrails.enabled = Some(true);
    Ok(Arc::new(app))
}
