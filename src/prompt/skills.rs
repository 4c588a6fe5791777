//! The section on skills: how they are found and followed, and which of them the operator installed.

use crate::protocol::trust::SystemWriter;

use super::facts::{Facts, SkillFacts, mutability};

/// Skills, as a full list (PR-6) or as an index of names (PR-5).
pub(super) fn skill_system(facts: &Facts<'_>, out: &mut SystemWriter) {
    let skills = &facts.skills;
    if !skills.applies {
        return;
    }
    out.framework("<skill_system>\n");
    out.framework(
        "A skill is a folder with a `SKILL.md`: a tried way of doing one kind of task. Skills are under `",
    );
    match facts.inputs.skills.container_path {
        Some(path) => out.operator_verbatim(path),
        None => out.framework("/mnt/skills"),
    };
    out.framework("`.");
    if skills.any() {
        discovery(facts, out);
    }
    if skills.evolution {
        evolution(out);
    }
    listings(skills, out);
    out.framework("\n</skill_system>");
}

/// How to get from a request to a skill.
fn discovery(facts: &Facts<'_>, out: &mut SystemWriter) {
    let skills = &facts.skills;
    out.framework("\n1. Before you start, compare the request with ");
    out.framework(match (skills.index, skills.operator.is_empty()) {
        (_, true) => "the entries in the `user_skills` part of the data block.",
        (true, false) => "the names in the index below.",
        (false, false) => "the descriptions in the list below.",
    });
    if !skills.user.is_empty() {
        if !skills.operator.is_empty() {
            out.framework(
                " There are more in the `user_skills` part of the data block; choose among them in the same way.",
            );
        }
        out.framework(" What users installed tells you when it may help, and decides nothing.");
    }
    if skills.index {
        out.framework(
            "\n2. If one may fit, call `describe_skill` to learn what it is for and where its file is.",
        );
    }
    out.framework(match (skills.index, facts.has("read_file")) {
        (false, true) => "\n2. If one fits, read its file with `read_file`.",
        (true, true) => "\n3. If it fits, read its file with `read_file`.",
        (false, false) => "\n2. If one fits, read its file.",
        (true, false) => "\n3. If it fits, read its file.",
    });
    out.framework(
        " Follow it as far as it serves the request and these rules allow. Open the other files of its folder one by one, when a \
         step needs them; paths in a skill are relative to its folder.",
    );
    if facts.inputs.skills.slash_activation {
        out.framework(
            "\nA message of the user that begins with `/` and the name of a skill activates it: its text is then given to you \
             with the message. Follow it for that request without reading the file again.",
        );
    }
}

/// How skills come about and get better (PR-10).
fn evolution(out: &mut SystemWriter) {
    out.framework(
        "\nSkills may grow. After work that was intricate, that the user had to correct or that broke new ground, consider \
         keeping the way as a skill: mend one that exists (patch) rather than adding another, and ask the user before you \
         create one. Use `skill_manage` alone for it (actions: create, patch, edit, write_file, delete); never write a \
         `SKILL.md` into a user's folder by other means. What was needed once is no skill.",
    );
}

fn listings(skills: &SkillFacts<'_>, out: &mut SystemWriter) {
    if skills.index {
        if !skills.operator.is_empty() {
            out.framework("\n<skill_index>\n");
            for (place, skill) in skills.operator.iter().enumerate() {
                out.framework(if place > 0 { ", " } else { "" });
                out.operator_line(skill.name);
            }
            out.framework("\n</skill_index>");
        }
        return;
    }
    if !skills.operator.is_empty() {
        out.framework("\n<available_skills>");
        for skill in &skills.operator {
            out.framework("\n- ").operator_line(skill.name);
            out.framework(" ").framework(mutability(skill.category));
            out.framework(": ").operator_line(skill.description);
            out.framework(" (file: ").operator_line(skill.location);
            out.framework(")");
        }
        out.framework("\n</available_skills>");
    }
    if skills.operator_disabled.is_empty() && skills.user_disabled.is_empty() {
        return;
    }
    out.framework("\n<disabled_skills>\nThese are switched off. Do not read, follow or offer them");
    if !skills.user_disabled.is_empty() {
        out.framework(", nor those in the `disabled_user_skills` part of the data block");
    }
    out.framework(".");
    for name in &skills.operator_disabled {
        out.framework("\n- ").operator_line(name);
    }
    out.framework("\n</disabled_skills>");
}
