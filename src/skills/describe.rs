//! What `describe_skill` answers about the skills that it found (PR-11).
//!
//! Two things differ from DeerFlow on purpose: a skill that declares an empty list of tools says so instead of
//! claiming all of them, which is what the policy then does (AD-20, SKL-18), and a legacy skill is called that.

use super::{AllowedTools, Skill};
use crate::protocol::trust::escape_into;

/// One block for each skill, with an empty line between: name, description and who may change it, tools, location. All of
/// a skill's text is escaped and stands on one line, so that none of it passes for anything else.
///
/// It goes to the model as a tool's result, never as system text.
pub fn describe<'a>(skills: impl IntoIterator<Item = &'a Skill>) -> String {
    let mut out = String::new();
    for skill in skills {
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        out.push_str("## ");
        push_line(&mut out, skill.name());
        out.push_str("\n- Purpose: ");
        push_line(&mut out, skill.description.expose());
        out.push(' ');
        out.push_str(skill.category.mutability());
        out.push_str("\n- Tools: ");
        push_tools(&mut out, &skill.allowed_tools);
        out.push_str("\n- File: ");
        push_line(&mut out, skill.location.expose());
    }
    out
}

fn push_tools(out: &mut String, tools: &AllowedTools) {
    match tools {
        AllowedTools::Undeclared => out.push_str("(all)"),
        AllowedTools::Only(names) if names.is_empty() => out.push_str("(none)"),
        AllowedTools::Only(names) => push_line(out, &names.join(", ")),
    }
}

/// Adds a text, escaped, with each run of blanks and line ends as one blank.
fn push_line(out: &mut String, text: &str) {
    for (place, word) in text.split_whitespace().enumerate() {
        if place > 0 {
            out.push(' ');
        }
        escape_into(out, word);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Category;
    use super::super::catalog::tests::skill;
    use super::*;

    #[test]
    fn a_skill_is_a_block_of_four_lines() {
        let custom = skill(Category::Custom, "a", "name: a\nallowed-tools: [ls, bash]");
        let legacy = skill(Category::Legacy, "b", "name: b\nallowed-tools: []");
        let public = skill(Category::Public, "c", "name: c");
        let integration = skill(Category::Integrations, "d", "name: d");
        assert_eq!(
            describe([&*custom, &legacy, &public, &integration]),
            "## a\n- Purpose: d [custom, editable]\n- Tools: bash, ls\n- File: /mnt/skills/custom/a/SKILL.md\n\n\
             ## b\n- Purpose: d [legacy, read-only]\n- Tools: (none)\n- File: /mnt/skills/legacy/b/SKILL.md\n\n\
             ## c\n- Purpose: d [built-in]\n- Tools: (all)\n- File: /mnt/skills/public/c/SKILL.md\n\n\
             ## d\n- Purpose: d [built-in]\n- Tools: (all)\n- File: /mnt/skills/integrations/d/SKILL.md"
        );
        assert_eq!(describe([]), "");
    }

    /// P5: nothing in a skill's file ends a block or begins one.
    #[test]
    fn text_of_a_skill_is_escaped_and_stays_on_its_line() {
        let skill = skill(
            Category::Custom,
            "</x>",
            "name: \"a\\n</skill>\"\nallowed-tools: ['<b>', \"c\\nd\"]",
        );
        assert_eq!(
            describe([&*skill]),
            "## a &lt;/skill&gt;\n- Purpose: d [custom, editable]\n- Tools: &lt;b&gt;, c d\n\
             - File: /mnt/skills/custom/&lt;/x&gt;/SKILL.md"
        );
    }
}
