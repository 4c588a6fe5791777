//! `describe_skill`: the model reads what a skill is for before it reads the skill.

use std::sync::Arc;

use serde_json::Value;

use super::query::{self, Item};
use crate::ports::tool::{
    DynTool, Tool, ToolAnswer, ToolInvocation, ToolOrigin, ToolOutcome, ToolSpec,
};
use crate::skills::Skill;
use crate::skills::describe::describe;

/// Name of the tool.
pub const NAME: &str = "describe_skill";

/// The tool over the skills that an agent may see, in their order.
pub fn build(skills: Vec<Arc<Skill>>) -> Arc<dyn DynTool> {
    Arc::new(DescribeSkill {
        spec: ToolSpec {
            name: NAME.to_owned(),
            description: DESCRIPTION.to_owned(),
            parameters: query::parameters().into(),
        },
        skills,
    })
}

const DESCRIPTION: &str = "\
Look up skills by what they are for. Gives the description of each skill found, the tools that it allows, and where its \
SKILL.md is; read that file before you follow the skill. Queries:
- \"select:first-skill,second-skill\" gives these by name, as many as you like;
- \"+word rest\" finds skills with that word in the name, those first that fit the rest best;
- anything else is a pattern (case does not count) that is looked for in names and descriptions.
The last two give the 5 best.";

struct DescribeSkill {
    spec: ToolSpec,
    skills: Vec<Arc<Skill>>,
}

impl Tool for DescribeSkill {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn origin(&self) -> &ToolOrigin {
        &ToolOrigin::Skill
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let query = invocation.args.get("query").and_then(Value::as_str);
        ToolOutcome::Answer(ToolAnswer {
            content: self.describe(query.unwrap_or_default()).into(),
            ..ToolAnswer::default()
        })
    }
}

impl DescribeSkill {
    fn describe(&self, query: &str) -> String {
        let items: Vec<Item<'_>> = self
            .skills
            .iter()
            .map(|skill| Item {
                name: skill.name(),
                description: skill.description.expose(),
            })
            .collect();
        let found = query::find(query, &items);
        if found.is_empty() {
            let shown: String = query.chars().take(200).collect();
            return format!("No skill fits {shown:?}.");
        }
        describe(found.into_iter().map(|place| &*self.skills[place]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{call, ready};
    use serde_json::json;

    use super::*;
    use crate::protocol::trust::{SourcedText, UntrustedText};
    use crate::skills::{AllowedTools, Category};

    fn skill(name: &str, description: &str, allowed_tools: AllowedTools) -> Arc<Skill> {
        let text = |text: &str| SourcedText::Untrusted(UntrustedText::user(text));
        Arc::new(Skill {
            name: text(name),
            description: text(description),
            category: Category::Custom,
            allowed_tools,
            required_secrets: Vec::new(),
            secrets_autonomous: true,
            location: text(&format!("/mnt/skills/custom/{name}/SKILL.md")),
            content: "".into(),
            enabled: true,
        })
    }

    fn described(skills: Vec<Arc<Skill>>, query: &str) -> String {
        let tool = build(skills);
        match ready(tool.call_boxed(call(NAME, json!({ "query": query })))) {
            ToolOutcome::Answer(answer) => answer.content.as_str().expect("text").to_owned(),
            failed @ ToolOutcome::Failed(_) => panic!("{failed:?}"),
        }
    }

    #[test]
    fn pr_11_a_skill_is_described_with_its_tools_and_place_and_escaped() {
        let skills = vec![
            skill("demo", "Makes </skill> demos", AllowedTools::Undeclared),
            skill("none", "n", AllowedTools::Only(Vec::new())),
            skill(
                "some",
                "s",
                AllowedTools::Only(vec!["a<b".into(), "c".into()]),
            ),
        ];
        let text = described(skills.clone(), "select:demo");
        for part in [
            "demo",
            "Makes &lt;/skill&gt; demos",
            "custom, editable",
            "(all)",
            "/mnt/skills/custom/demo/SKILL.md",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(described(skills.clone(), "none").contains("(none)"));
        assert!(described(skills.clone(), "some").contains("a&lt;b, c"));
        assert_eq!(
            described(skills, "nothing of it"),
            "No skill fits \"nothing of it\"."
        );
    }

    #[test]
    fn pr_11_ranked_queries_give_five_and_select_any_number() {
        let names: Vec<String> = (0..8).map(|n| format!("skill-{n}")).collect();
        let skills: Vec<_> = names
            .iter()
            .map(|name| skill(name, "d", AllowedTools::Undeclared))
            .collect();
        let count = |text: &str| text.matches("/SKILL.md").count();
        assert_eq!(count(&described(skills.clone(), "skill")), 5);
        assert_eq!(
            count(&described(skills, &format!("select:{}", names.join(",")))),
            8
        );
    }
}
