//! Who may use which model and tool: the principal of a request, the providers that decide, and the filter over tools (MD-2 to
//! MD-4, TL-8).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::sections::Sections;
use super::selection::AgentSelection;
use crate::ports::authorization::{Access, Authorizer, Principal, Resource, Verdict};
use crate::protocol::app_config::{
    AccessPolicy, Allowed, AppConfig, AuthorizationLists, AuthorizationProviderConfig, RoleConfig,
};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::warning::{Warning, Warnings};

/// The access of a request, none where nobody is asked. `lists` are those of the assembly; they hold besides the
/// provider of the section, so that an assembly can only narrow what the application allows.
///
/// # Errors
/// `MissingMember` at `/authorization/provider` when authorization is on and there is nobody to ask; `WrongType` at a
/// member of the request that says who it is for.
pub fn access_of_request(
    app: &AppConfig,
    lists: Option<&AuthorizationLists>,
    sections: Sections<'_>,
    selection: &AgentSelection,
) -> Result<Option<Access>, Error> {
    let section = &app.authorization;
    let mut providers: Vec<Arc<dyn Authorizer>> = Vec::new();
    if section.enabled {
        match &section.provider {
            Some(AuthorizationProviderConfig::Roles(roles)) => {
                let rbac = RoleAuthorizer::new(roles.clone(), &section.default_role);
                providers.push(Arc::new(
                    rbac.map_err(|error| error.below("/authorization"))?,
                ));
            }
            Some(AuthorizationProviderConfig::Lists(lists)) => {
                providers.push(Arc::new(ListAuthorizer::new(lists.clone())));
            }
            None => {}
        }
    }
    if let Some(lists) = lists {
        providers.push(Arc::new(ListAuthorizer::new(lists.clone())));
    }
    let authorizer: Arc<dyn Authorizer> = match (providers.pop(), providers.pop()) {
        (None, _) if section.enabled => {
            return Err(Error::at(
                ErrorCode::MissingMember,
                "/authorization/provider",
                "authorization is on, and neither the configuration nor the assembly says who is asked",
            ));
        }
        (None, _) => return Ok(None),
        (Some(only), None) => only,
        (Some(inner), Some(outer)) => Arc::new(Both { outer, inner }),
    };
    Ok(Some(Access {
        authorizer,
        principal: principal(sections, selection, &section.default_role)?,
        fail_closed: section.fail_closed,
    }))
}

/// On whose behalf an agent works (MD-3). A role that nobody knows is kept; an empty one gives way to `default_role`.
///
/// # Errors
/// `WrongType` at a member of another type.
pub fn principal(
    sections: Sections<'_>,
    selection: &AgentSelection,
    default_role: &str,
) -> Result<Principal, Error> {
    let role = sections.text("user_role")?.filter(|role| !role.is_empty());
    let attributes = match sections.get("authz_attributes") {
        None => Map::new(),
        Some(member) => match member.value {
            Value::Null => Map::new(),
            Value::Object(attributes) => attributes.clone(),
            _ => return Err(member.wrong("an object")),
        },
    };
    Ok(Principal {
        user_id: selection.user_id.as_str().to_owned(),
        role: role.unwrap_or_else(|| default_role.to_owned()),
        oauth_provider: sections.text("oauth_provider")?,
        oauth_id: sections.text("oauth_id")?,
        channel_user_id: sections.text("channel_user_id")?,
        // Only the very value: what is merely true in Python's eyes is not enough.
        is_internal: sections
            .get("is_internal")
            .is_some_and(|member| *member.value == Value::Bool(true)),
        attributes,
    })
}

/// Lists by role (MD-4).
pub struct RoleAuthorizer {
    roles: BTreeMap<String, RoleConfig>,
    default_role: String,
}

impl RoleAuthorizer {
    /// Takes the lists.
    ///
    /// # Errors
    /// `OutOfRange` at `/default_role` when it is none of the roles.
    pub fn new(roles: BTreeMap<String, RoleConfig>, default_role: &str) -> Result<Self, Error> {
        if !roles.contains_key(default_role) {
            let text = format!("there is no role {default_role:?}");
            return Err(Error::at(ErrorCode::OutOfRange, "/default_role", text));
        }
        Ok(RoleAuthorizer {
            roles,
            default_role: default_role.to_owned(),
        })
    }

    /// The list for a principal, none where the role is not restricted.
    fn policy_for(
        &self,
        principal: &Principal,
        resource: Resource,
    ) -> Result<Option<&AccessPolicy>, String> {
        let role = self.roles.get(&principal.role);
        let role = role.ok_or_else(|| format!("there is no role {:?}", principal.role))?;
        Ok(match resource {
            Resource::Model => role.models.as_ref(),
            Resource::Tool => role.tools.as_ref(),
        })
    }
}

impl Authorizer for RoleAuthorizer {
    fn name(&self) -> &str {
        "rbac"
    }

    fn authorize(
        &self,
        principal: &Principal,
        resource: Resource,
        _action: &str,
        target: &str,
    ) -> Result<Verdict, String> {
        let policy = self.policy_for(principal, resource)?;
        Ok(verdict(policy, resource, target, || {
            format!("role {:?}", principal.role)
        }))
    }

    fn filter_resources(
        &self,
        principal: &Principal,
        resource: Resource,
        names: &[&str],
    ) -> Result<Vec<String>, String> {
        Ok(filtered(self.policy_for(principal, resource)?, names))
    }

    fn policy(&self) -> Map<String, Value> {
        let roles: Map<String, Value> = self
            .roles
            .iter()
            .map(|(name, role)| {
                let lists = resources(role.models.as_ref(), role.tools.as_ref());
                (name.clone(), Value::Object(lists))
            })
            .collect();
        let mut policy = Map::new();
        policy.insert("default_role".to_owned(), self.default_role.clone().into());
        policy.insert("roles".to_owned(), roles.into());
        policy
    }
}

/// The same lists for everybody: those that the host gives with an assembly.
pub struct ListAuthorizer(AuthorizationLists);

impl ListAuthorizer {
    /// Takes the lists.
    pub fn new(lists: AuthorizationLists) -> Self {
        ListAuthorizer(lists)
    }

    fn policy_for(&self, resource: Resource) -> Option<&AccessPolicy> {
        match resource {
            Resource::Model => self.0.models.as_ref(),
            Resource::Tool => self.0.tools.as_ref(),
        }
    }
}

impl Authorizer for ListAuthorizer {
    fn name(&self) -> &str {
        "lists"
    }

    fn authorize(
        &self,
        _principal: &Principal,
        resource: Resource,
        _action: &str,
        target: &str,
    ) -> Result<Verdict, String> {
        let policy = self.policy_for(resource);
        Ok(verdict(policy, resource, target, || "the host".to_owned()))
    }

    fn filter_resources(
        &self,
        _principal: &Principal,
        resource: Resource,
        names: &[&str],
    ) -> Result<Vec<String>, String> {
        Ok(filtered(self.policy_for(resource), names))
    }

    fn policy(&self) -> Map<String, Value> {
        resources(self.0.models.as_ref(), self.0.tools.as_ref())
    }
}

/// Two of them, who both have to allow.
struct Both {
    outer: Arc<dyn Authorizer>,
    inner: Arc<dyn Authorizer>,
}

impl Authorizer for Both {
    fn name(&self) -> &str {
        self.outer.name()
    }

    fn authorize(
        &self,
        principal: &Principal,
        resource: Resource,
        action: &str,
        target: &str,
    ) -> Result<Verdict, String> {
        // A denial stands even where the other cannot tell.
        let outer = self.outer.authorize(principal, resource, action, target);
        let inner = self.inner.authorize(principal, resource, action, target);
        match (outer, inner) {
            (Ok(Verdict::Deny(why)), _) | (_, Ok(Verdict::Deny(why))) => Ok(Verdict::Deny(why)),
            (Err(why), _) | (_, Err(why)) => Err(why),
            (Ok(Verdict::Allow), Ok(Verdict::Allow)) => Ok(Verdict::Allow),
        }
    }

    fn filter_resources(
        &self,
        principal: &Principal,
        resource: Resource,
        names: &[&str],
    ) -> Result<Vec<String>, String> {
        let left = self.outer.filter_resources(principal, resource, names)?;
        let left: Vec<&str> = left.iter().map(String::as_str).collect();
        self.inner.filter_resources(principal, resource, &left)
    }

    fn policy(&self) -> Map<String, Value> {
        let mut policy = self.outer.policy();
        let inner = json!({"name": self.inner.name(), "parameters": self.inner.policy()});
        policy.insert("provider".to_owned(), inner);
        policy
    }
}

fn verdict(
    policy: Option<&AccessPolicy>,
    resource: Resource,
    target: &str,
    who: impl FnOnce() -> String,
) -> Verdict {
    match policy {
        Some(policy) if !policy.allows(target) => Verdict::Deny(format!(
            "{} does not allow the {} {target:?}",
            who(),
            resource.name()
        )),
        _ => Verdict::Allow,
    }
}

fn filtered(policy: Option<&AccessPolicy>, names: &[&str]) -> Vec<String> {
    names
        .iter()
        .filter(|name| policy.is_none_or(|policy| policy.allows(name)))
        .map(|name| (*name).to_owned())
        .collect()
}

/// Lists for a descriptor: sorted, so that their order in the configuration makes no difference (AD-26).
fn resources(models: Option<&AccessPolicy>, tools: Option<&AccessPolicy>) -> Map<String, Value> {
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort_unstable();
        names.dedup();
        names
    };
    let lists = |policy: &AccessPolicy| {
        let allow = match &policy.allow {
            Allowed::All => Value::from("*"),
            Allowed::Only(names) => sorted(names).into(),
        };
        json!({"allow": allow, "deny": sorted(&policy.deny)})
    };
    [("models", models), ("tools", tools)]
        .into_iter()
        .filter_map(|(name, policy)| Some((name.to_owned(), lists(policy?))))
        .collect()
}

/// Those of `names` that may be bound, in the order given (TL-8). Without access, all of them.
///
/// Where the answer cannot be had or names what was not asked about, none when failing closed, else all with a warning.
pub fn filter_tools(access: Option<&Access>, names: &[&str]) -> (Vec<String>, Warnings) {
    let mut warnings = Warnings::new();
    let all = || names.iter().map(|name| (*name).to_owned()).collect();
    let Some(access) = access else {
        return (all(), warnings);
    };
    let answer = access
        .authorizer
        .filter_resources(&access.principal, Resource::Tool, names);
    let answer = answer.and_then(|allowed| match stranger(&allowed, names) {
        Some(name) => Err(format!("it allows {name:?}, which nobody asked about")),
        None => Ok(allowed),
    });
    let kept = match answer {
        Ok(allowed) => names
            .iter()
            .filter(|name| allowed.iter().any(|allowed| allowed == *name))
            .map(|name| (*name).to_owned())
            .collect(),
        Err(why) => {
            let (follows, kept) = if access.fail_closed {
                ("the agent has no tools", Vec::new())
            } else {
                ("the agent has all of its tools", all())
            };
            warnings.add(
                Warning::AuthorizationFailed,
                format!("the tools could not be authorized ({why}); {follows}"),
            );
            kept
        }
    };
    (kept, warnings)
}

/// A name in an answer that was not in the question.
pub(super) fn stranger<'a>(answer: &'a [String], asked: &[&str]) -> Option<&'a str> {
    let mut names = answer.iter().map(String::as_str);
    names.find(|name| !asked.contains(name))
}
