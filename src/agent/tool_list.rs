//! Which tools a lead agent is bound to: collected, authorised, deferred, each in its order.
//!
//! Source: DeerFlow `get_available_tools` and the tool part of `assemble_lead_agent`, TL-1 to TL-13, TOOL-1.

use std::collections::HashSet;
use std::sync::Arc;

use super::authorization::filter_tools;
use crate::middleware::authorization_gate::AuthorizationGate;
use crate::ports::authorization::Access;
use crate::ports::tool::{DynTool, ToolOrigin};
use crate::protocol::error::Error;
use crate::protocol::trust::{SourcedText, UntrustedText};
use crate::protocol::warning::{Warning, Warnings};
use crate::tools::deferred::DeferredTools;
use crate::tools::{BuiltinInputs, ask_clarification, builtins, tool_search};

/// The group of tools that run commands on the host's own machine.
const HOST_BASH_GROUP: &str = "bash";

/// A tool of the configuration.
#[derive(Clone)]
pub struct ConfiguredTool {
    /// The group that agents choose it by.
    pub group: Option<String>,
    /// The tool. One that comes from an MCP server takes no part in the choice of groups.
    pub tool: Arc<dyn DynTool>,
}

/// The tool by which an agent changes itself (TL-5).
#[derive(Clone)]
pub enum SelfTool {
    /// An agent without a name has none.
    None,
    /// `setup_agent`, of the agent that makes agents: it has every configured tool, whatever the groups say.
    Setup(Arc<dyn DynTool>),
    /// `update_agent`, of an agent with a name; not for requests that come from a webhook, where anybody may write.
    Update(Arc<dyn DynTool>),
}

/// Which tools an agent may have by their names, whatever else there is. By default all of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct NameFilter<'a> {
    /// These alone; `None` for all.
    pub only: Option<&'a [String]>,
    /// None of these, even if they are among the others.
    pub without: &'a [&'a str],
}

impl NameFilter<'_> {
    /// Whether the tool of this name may be there.
    pub fn allows(&self, name: &str) -> bool {
        let is_listed = self
            .only
            .is_none_or(|only| only.iter().any(|one| one == name));
        is_listed && !self.without.contains(&name)
    }
}

/// What the list is made of.
pub struct ToolListInputs<'a> {
    /// Configured tools, in order.
    pub configured: &'a [ConfiguredTool],
    /// The agent's groups: `None` for all configured tools, an empty list for none of them, else those of these groups and
    /// those without a group.
    pub groups: Option<&'a [String]>,
    /// Whether tools that run commands on the host's machine may be there.
    pub host_bash: bool,
    /// What decides about built-in tools; `None` for an agent that has none but those among `configured`.
    pub builtins: Option<BuiltinInputs>,
    /// The tool by which the agent changes itself.
    pub self_tool: SelfTool,
    /// Whether the request comes from a webhook.
    pub webhook: bool,
    /// Whether nobody is there to answer questions (TL-6).
    pub non_interactive: bool,
    /// Which of these tools the agent may have by their names (SUB-15). Late tools and `tool_search` are not asked about.
    pub names: NameFilter<'a>,
    /// Tools that are authorised with the others and bound after them: `describe_skill`, those of memory (TL-7).
    pub late: Vec<Arc<dyn DynTool>>,
    /// Whom to ask which tools the user may have; `None` when authorization is off.
    pub access: Option<Access>,
    /// Whether tools of MCP servers are deferred (`tool_search.enabled`).
    pub deferral: bool,
}

/// The tools of an agent.
pub struct ToolList {
    /// What the agent is bound to: the authorised tools, `tool_search` if there is one, the late ones (TL-9). Names are
    /// unique.
    pub bound: Vec<Arc<dyn DynTool>>,
    /// What is deferred, if anything is.
    pub deferred: Option<DeferredTools>,
    /// The second layer of authorization, which asks the provider that the first has asked (TL-10).
    pub gate: Option<AuthorizationGate>,
}

impl ToolList {
    /// Names of the tools that are deferred, in order.
    pub fn deferred_names(&self) -> Arc<[String]> {
        match &self.deferred {
            Some(deferred) => deferred.names.clone(),
            None => Arc::new([]),
        }
    }

    /// What tells this set of deferred tools from another, if any are.
    pub fn catalog_hash(&self) -> Option<Arc<str>> {
        self.deferred.as_ref().map(|all| all.catalog_hash.clone())
    }

    /// Names of the bound tools that MCP servers bring.
    pub fn remote_names(&self) -> Vec<String> {
        let remote = self.bound.iter();
        let remote = remote.filter(|tool| tool.origin().mcp().is_some());
        remote.map(|tool| tool.spec().name.clone()).collect()
    }
}

/// The names of deferred tools for a prompt. Only what an MCP server brings is deferred, and its names are the server's.
pub fn deferred_texts(names: &[String]) -> Vec<SourcedText> {
    let names = names.iter().map(String::as_str);
    names
        .map(|name| SourcedText::Untrusted(UntrustedText::remote(name)))
        .collect()
}

/// Makes the list.
///
/// Of two tools with one name the first is kept and a warning tells of the other: configured tools come before built-in
/// ones, those before tools of MCP servers, those before the tool by which the agent changes itself and the late ones. So no
/// server can take the name of a built-in tool, and with deferral not that of `tool_search` either, which is made last.
///
/// # Errors
/// `AssemblyInvalid` when tools are to be deferred and a configured one is named `tool_search` (TL-13).
pub fn available_tools(inputs: ToolListInputs<'_>) -> Result<(ToolList, Warnings), Error> {
    let mut warnings = Warnings::new();
    let mut candidates = Candidates::default();
    for tool in configured(&inputs) {
        candidates.add(tool, &mut warnings);
    }
    for tool in inputs.builtins.iter().flat_map(builtins) {
        candidates.add(tool, &mut warnings);
    }
    for tool in remote(&inputs) {
        if inputs.deferral && tool.spec().name == tool_search::NAME {
            left_out(tool.as_ref(), &mut warnings);
        } else {
            candidates.add(tool, &mut warnings);
        }
    }
    match &inputs.self_tool {
        SelfTool::Setup(tool) => candidates.add(tool.clone(), &mut warnings),
        SelfTool::Update(tool) if !inputs.webhook => candidates.add(tool.clone(), &mut warnings),
        SelfTool::Update(_) | SelfTool::None => {}
    }
    if inputs.non_interactive {
        candidates.retain(|name| name != ask_clarification::NAME);
    }
    candidates.retain(|name| inputs.names.allows(name));
    let early = candidates.tools.len();
    for tool in inputs.late {
        candidates.add(tool, &mut warnings);
    }
    let allowed = authorised(&candidates.tools, inputs.access.as_ref(), &mut warnings);

    let (mut bound, mut late) = (Vec::new(), Vec::new());
    for (place, (tool, allowed)) in candidates.tools.into_iter().zip(allowed).enumerate() {
        match allowed {
            true if place < early => bound.push(tool),
            true => late.push(tool),
            false => {}
        }
    }
    let deferred = match inputs.deferral {
        true => DeferredTools::of(&bound)?,
        false => None,
    };
    bound.extend(deferred.as_ref().map(|deferred| deferred.search.clone()));
    bound.append(&mut late);
    let gate = inputs
        .access
        .map(|access| AuthorizationGate::new(access, deferred.is_some()));
    let list = ToolList {
        bound,
        deferred,
        gate,
    };
    Ok((list, warnings))
}

/// The configured tools of the agent's groups, but for those of MCP servers (TL-1.1, TL-2).
fn configured<'a>(inputs: &'a ToolListInputs<'_>) -> impl Iterator<Item = Arc<dyn DynTool>> + 'a {
    let groups = match inputs.self_tool {
        SelfTool::Setup(_) => None,
        SelfTool::None | SelfTool::Update(_) => inputs.groups,
    };
    let is_chosen = move |tool: &&ConfiguredTool| {
        let group = tool.group.as_ref();
        let in_groups = match groups {
            None => true,
            Some([]) => false,
            Some(groups) => group.is_none_or(|group| groups.contains(group)),
        };
        let is_host_bash = group.is_some_and(|group| group == HOST_BASH_GROUP);
        in_groups && (inputs.host_bash || !is_host_bash) && tool.tool.origin().mcp().is_none()
    };
    let tools = inputs.configured.iter().filter(is_chosen);
    tools.map(|tool| tool.tool.clone())
}

/// The tools of MCP servers (TL-1.3).
fn remote<'a>(inputs: &'a ToolListInputs<'_>) -> impl Iterator<Item = Arc<dyn DynTool>> + 'a {
    let tools = inputs.configured.iter().map(|configured| &configured.tool);
    tools.filter(|tool| tool.origin().mcp().is_some()).cloned()
}

/// Tools with different names, in order.
#[derive(Default)]
struct Candidates {
    tools: Vec<Arc<dyn DynTool>>,
    names: HashSet<String>,
}

impl Candidates {
    fn add(&mut self, tool: Arc<dyn DynTool>, warnings: &mut Warnings) {
        if self.names.insert(tool.spec().name.clone()) {
            self.tools.push(tool);
        } else {
            left_out(tool.as_ref(), warnings);
        }
    }

    fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.tools.retain(|tool| is_kept(&tool.spec().name));
        self.names.retain(|name| is_kept(name));
    }
}

fn left_out(tool: &dyn DynTool, warnings: &mut Warnings) {
    let name = &tool.spec().name;
    let text = match tool.origin() {
        ToolOrigin::Builtin | ToolOrigin::Skill => return replaced(name, warnings),
        ToolOrigin::Host => format!("a second tool {name:?} was left out: its name is taken"),
        ToolOrigin::Mcp(mcp) => {
            let of = mcp.server.as_deref();
            let of = of.map_or_else(String::new, |server| {
                format!(" of the MCP server {server:?}")
            });
            format!("the tool {name:?}{of} was left out: its name is taken")
        }
    };
    warnings.add(Warning::ToolDuplicate, text);
}

/// Warns that a tool of the host's own stands in for the built-in one of its name.
pub fn replaced(name: &str, warnings: &mut Warnings) {
    let questions = match name == ask_clarification::NAME {
        true => ", and its calls put no questions to the user",
        false => "",
    };
    let text = format!(
        "the built-in tool {name:?} was left out: another tool has its name and is called in its place{questions}"
    );
    warnings.add(Warning::ToolDuplicate, text);
}

/// Which of the tools the user may have: the first layer of authorization (TL-8).
fn authorised(
    tools: &[Arc<dyn DynTool>],
    access: Option<&Access>,
    warnings: &mut Warnings,
) -> Vec<bool> {
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    let (kept, found) = filter_tools(access, &names);
    warnings.extend(found);
    let kept: HashSet<String> = kept.into_iter().collect();
    names.iter().map(|name| kept.contains(*name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::authorization::{Authorizer, Principal, Resource, Verdict};
    use crate::protocol::error::ErrorCode;
    use crate::tools::testing::{host, mcp};

    fn grouped(group: &str, tool: Arc<dyn DynTool>) -> ConfiguredTool {
        ConfiguredTool {
            group: (!group.is_empty()).then(|| group.to_owned()),
            tool,
        }
    }

    fn inputs(configured: &[ConfiguredTool]) -> ToolListInputs<'_> {
        ToolListInputs {
            configured,
            groups: None,
            host_bash: false,
            builtins: Some(BuiltinInputs::default()),
            self_tool: SelfTool::None,
            webhook: false,
            non_interactive: false,
            names: NameFilter::default(),
            late: Vec::new(),
            access: None,
            deferral: false,
        }
    }

    fn names(list: &ToolList) -> Vec<&str> {
        list.bound
            .iter()
            .map(|tool| tool.spec().name.as_str())
            .collect()
    }

    /// The names, and how often something was left out.
    fn made(inputs: ToolListInputs<'_>) -> (Vec<String>, usize) {
        let (list, warnings) = available_tools(inputs).expect("a sound list");
        let duplicates = warnings
            .iter()
            .filter(|(warning, _)| *warning == Warning::ToolDuplicate);
        let names = names(&list).into_iter().map(str::to_owned).collect();
        (names, duplicates.count())
    }

    const BUILTINS: [&str; 2] = ["present_files", "ask_clarification"];

    /// Allows what is in the list, and knows whom it was asked for.
    struct Only(Result<Vec<&'static str>, &'static str>);

    impl Authorizer for Only {
        fn name(&self) -> &str {
            "only"
        }
        fn authorize(
            &self,
            _: &Principal,
            _: Resource,
            _: &str,
            _: &str,
        ) -> Result<Verdict, String> {
            Ok(Verdict::Allow)
        }
        fn filter_resources(
            &self,
            principal: &Principal,
            resource: Resource,
            _: &[&str],
        ) -> Result<Vec<String>, String> {
            assert_eq!(
                (principal.user_id.as_str(), resource),
                ("ann", Resource::Tool)
            );
            match &self.0 {
                Ok(names) => Ok(names.iter().map(|name| (*name).to_owned()).collect()),
                Err(reason) => Err((*reason).to_owned()),
            }
        }
    }

    fn only(answer: Result<Vec<&'static str>, &'static str>, fail_closed: bool) -> Option<Access> {
        Some(Access {
            authorizer: Arc::new(Only(answer)),
            principal: Principal {
                user_id: "ann".to_owned(),
                ..Principal::default()
            },
            fail_closed,
        })
    }

    #[test]
    fn tl_1_configured_built_in_and_mcp_tools_in_this_order() {
        let tools = [
            grouped("", mcp("m")),
            grouped("g", host("b")),
            grouped("", host("a")),
        ];
        let (names, duplicates) = made(inputs(&tools));
        assert_eq!(names, ["b", "a", BUILTINS[0], BUILTINS[1], "m"]);
        assert_eq!(duplicates, 0);
    }

    #[test]
    fn tl_1_of_two_tools_of_one_name_the_first_is_kept_with_a_warning() {
        let first = host("a");
        let tools = [
            grouped("", mcp("present_files")),
            grouped("", first.clone()),
            grouped("", host("a")),
            grouped("", mcp("a")),
            grouped("", host("ask_clarification")),
        ];
        let (list, warnings) = available_tools(inputs(&tools)).expect("a sound list");
        assert_eq!(names(&list), ["a", "ask_clarification", "present_files"]);
        assert!(Arc::ptr_eq(&list.bound[0], &first));
        assert!(
            list.bound[2].origin().mcp().is_none(),
            "a server takes no built-in's name"
        );
        assert_eq!(warnings.len(), 4);
    }

    #[test]
    fn tl_2_groups_choose_configured_tools_only() {
        let tools = [
            grouped("web", host("w")),
            grouped("file", host("f")),
            grouped("", host("free")),
            grouped("web", mcp("m")),
        ];
        let with = |groups: Option<&[String]>| {
            let inputs = ToolListInputs {
                groups,
                ..inputs(&tools)
            };
            made(inputs).0
        };
        assert_eq!(with(None)[..3], ["w", "f", "free"]);
        assert_eq!(with(Some(&["file".to_owned()]))[..2], ["f", "free"]);
        let none = with(Some(&[]));
        assert_eq!(
            none,
            [BUILTINS[0], BUILTINS[1], "m"],
            "an empty list is not an absent one"
        );
    }

    #[test]
    fn tl_1_host_bash_is_there_only_when_allowed() {
        let tools = [grouped("bash", host("sh")), grouped("web", host("w"))];
        assert!(!made(inputs(&tools)).0.contains(&"sh".to_owned()));
        let allowed = ToolListInputs {
            host_bash: true,
            ..inputs(&tools)
        };
        assert_eq!(made(allowed).0[0], "sh");
    }

    #[test]
    fn tl_5_the_tool_by_which_an_agent_changes_itself() {
        let tools = [grouped("web", host("w"))];
        let with = |self_tool, webhook| {
            let groups: &[String] = &["none".to_owned()];
            made(ToolListInputs {
                self_tool,
                webhook,
                groups: Some(groups),
                ..inputs(&tools)
            })
            .0
        };
        let update = || SelfTool::Update(host("update_agent"));
        assert_eq!(
            with(update(), false),
            [BUILTINS[0], BUILTINS[1], "update_agent"]
        );
        assert_eq!(with(update(), true), BUILTINS);
        let setup = SelfTool::Setup(host("setup_agent"));
        assert_eq!(
            with(setup, true),
            ["w", BUILTINS[0], BUILTINS[1], "setup_agent"]
        );
        assert_eq!(with(SelfTool::None, false), BUILTINS);
    }

    #[test]
    fn tl_6_nobody_is_asked_when_nobody_is_there() {
        let tools = [grouped("", host("a"))];
        let quiet = ToolListInputs {
            non_interactive: true,
            ..inputs(&tools)
        };
        assert_eq!(made(quiet).0, ["a", "present_files"]);
    }

    #[test]
    fn sub_15_the_allow_list_comes_first_then_the_deny_list_and_an_empty_one_is_not_an_absent_one()
    {
        let tools = [
            grouped("web", host("w")),
            grouped("", host("a")),
            grouped("", mcp("m")),
        ];
        let with = |only: Option<&[String]>, without: &[&str]| {
            let names = NameFilter { only, without };
            let inputs = ToolListInputs {
                names,
                late: vec![host("describe_skill")],
                deferral: true,
                ..inputs(&tools)
            };
            made(inputs).0
        };
        let listed = ["m", "a", "present_files", "gone"].map(str::to_owned);
        assert_eq!(
            with(Some(&listed), &["present_files", "nobody"]),
            ["a", "m", "tool_search", "describe_skill"],
            "the order is the list's own, and the search is asked of nobody (SUB-16)"
        );
        assert_eq!(with(Some(&[]), &[]), ["describe_skill"]);
        let denied = ["tool_search", "describe_skill", "w"];
        assert_eq!(
            with(None, &denied),
            [
                "a",
                BUILTINS[0],
                BUILTINS[1],
                "m",
                "tool_search",
                "describe_skill"
            ]
        );
        // A tool that is denied leaves its name to a late one, and to the search.
        let taken = [grouped("", host("describe_skill")), grouped("", mcp("m"))];
        let inputs = ToolListInputs {
            names: NameFilter {
                only: None,
                without: &["describe_skill"],
            },
            late: vec![host("describe_skill")],
            ..inputs(&taken)
        };
        assert_eq!(made(inputs).0[3..], ["describe_skill"]);
    }

    #[test]
    fn tl_7_late_tools_stand_last_and_give_way_to_others_of_their_name() {
        let tools = [grouped("", host("memory_add"))];
        let late = vec![
            host("describe_skill"),
            host("memory_add"),
            host("memory_search"),
        ];
        let (names, duplicates) = made(ToolListInputs {
            late,
            ..inputs(&tools)
        });
        assert_eq!(names[3..], ["describe_skill", "memory_search"]);
        assert_eq!(duplicates, 1);
    }

    #[test]
    fn tl_8_one_question_decides_and_the_order_stays() {
        let tools = [
            grouped("", host("a")),
            grouped("", host("b")),
            grouped("", mcp("m")),
        ];
        let with = |access| {
            let late = vec![host("describe_skill")];
            let inputs = ToolListInputs {
                access,
                late,
                ..inputs(&tools)
            };
            available_tools(inputs).expect("a sound list")
        };
        let (list, warnings) = with(only(Ok(vec!["describe_skill", "m", "a"]), true));
        assert_eq!(names(&list), ["a", "m", "describe_skill"]);
        assert!(warnings.is_empty() && list.gate.is_some());
        let (list, _) = with(only(Ok(Vec::new()), false));
        assert_eq!(names(&list), [""; 0], "P7: nothing allowed is nothing");
        let (list, warnings) = with(only(Ok(vec!["stranger", "a"]), true));
        assert_eq!(
            names(&list),
            [""; 0],
            "an answer to another question is none"
        );
        assert_eq!(warnings.len(), 1);
        let (list, warnings) = with(only(Err("down"), true));
        assert_eq!(names(&list), [""; 0]);
        assert_eq!(
            warnings.iter().next().map(|(warning, _)| warning),
            Some(Warning::AuthorizationFailed)
        );
        let (list, warnings) = with(only(Err("down"), false));
        assert_eq!((names(&list).len(), warnings.len()), (6, 1));
        let (list, _) = with(None);
        assert!(list.gate.is_none());
    }

    #[test]
    fn tl_9_deferral_sees_what_was_authorised_and_stands_before_the_late_tools() {
        let tools = [
            grouped("", mcp("m1")),
            grouped("", host("a")),
            grouped("", mcp("m2")),
        ];
        let with = |access, deferral| {
            let late = vec![host("describe_skill")];
            let inputs = ToolListInputs {
                access,
                late,
                deferral,
                ..inputs(&tools)
            };
            available_tools(inputs).expect("a sound list").0
        };
        let list = with(only(Ok(vec!["m2", "a", "describe_skill"]), true), true);
        assert_eq!(names(&list), ["a", "m2", "tool_search", "describe_skill"]);
        assert_eq!(*list.deferred.expect("deferred tools").names, ["m2"]);
        let list = with(None, false);
        assert!(list.deferred.is_none() && !names(&list).contains(&"tool_search"));
        let list = with(only(Ok(vec!["a"]), true), true);
        assert!(list.deferred.is_none(), "no MCP tool is left");
        assert_eq!(names(&list), ["a"]);
    }

    #[test]
    fn tl_13_the_name_of_the_search_is_not_for_servers_and_an_error_for_operators() {
        let hostile = [grouped("", mcp("tool_search")), grouped("", mcp("m"))];
        let inputs_of = |tools| ToolListInputs {
            deferral: true,
            ..inputs(tools)
        };
        let (list, warnings) = available_tools(inputs_of(&hostile)).expect("a sound list");
        assert_eq!(names(&list)[2..], ["m", "tool_search"]);
        assert!(list.bound[3].origin().mcp().is_none());
        assert_eq!(warnings.len(), 1);
        let taken = [grouped("", host("tool_search")), grouped("", mcp("m"))];
        let error = available_tools(inputs_of(&taken))
            .map(|_| ())
            .expect_err("taken");
        assert_eq!(error.code, ErrorCode::AssemblyInvalid);
        let (list, _) = available_tools(inputs_of(&taken[..1])).expect("nothing to defer");
        assert_eq!(names(&list)[0], "tool_search");
    }
}
