//! The prompt of a subagent: golden texts, the order of its parts, and what may stand in which channel.

use std::collections::BTreeSet;
use std::sync::Arc;

use fawn::prompt::{
    Mount, PromptSkills, SkillListing, SubagentPromptInputs, SubagentRole, render_subagent,
};
use fawn::protocol::trust::{SourcedText, UntrustedText};
use fawn::skills::Skill;

use crate::prompt::{
    TOOLS, assert_contained, by_operator, canary, check, compare, hints, operator, skill, skills,
};
use crate::support::random::Random;

fn golden(name: &str, inputs: &SubagentPromptInputs<'_>) {
    let prompt = render_subagent(inputs);
    check(&prompt);
    assert_eq!(render_subagent(inputs), prompt, "PT-3");
    compare(name, &prompt);
}

#[test]
fn golden_general_purpose() {
    golden(
        "subagent_general_purpose",
        &SubagentPromptInputs {
            bound_tools: TOOLS.iter().copied().collect(),
            skills: PromptSkills {
                installed: &skills(),
                evolution: true,
                slash_activation: true,
                ..PromptSkills::default()
            },
            deferred_tools: &[
                SourcedText::Untrusted(UntrustedText::remote("tracker_search")),
                by_operator("archive"),
            ],
            routing_hints: &hints(),
            mounts: &[Mount {
                container_path: operator("/mnt/shared"),
                read_only: true,
            }],
            shell_available: true,
            ..SubagentPromptInputs::default()
        },
    );
}

#[test]
fn golden_bash() {
    golden(
        "subagent_bash",
        &SubagentPromptInputs {
            role: SubagentRole::Bash,
            bound_tools: BTreeSet::from(["bash", "ls", "read_file", "write_file", "str_replace"]),
            shell_available: true,
            ..SubagentPromptInputs::default()
        },
    );
}

#[test]
fn golden_custom_index() {
    let own = operator("\n  You audit figures against their <source>.\n\nBe terse & exact.\n");
    let installed: Vec<Arc<Skill>> = skills()
        .into_iter()
        .filter(|skill| skill.name.operator().is_some())
        .collect();
    let inputs = SubagentPromptInputs {
        role: SubagentRole::Custom(&own),
        bound_tools: BTreeSet::from(["web_search", "describe_skill"]),
        skills: PromptSkills {
            installed: &installed,
            listing: SkillListing::Index,
            ..PromptSkills::default()
        },
        ..SubagentPromptInputs::default()
    };
    let prompt = render_subagent(&inputs);
    // What the operator wrote stands as it is, with tags that are none of ours.
    let opening =
        "You audit figures against their <source>.\n\nBe terse & exact.\n\n<report_contract>\n";
    assert!(prompt.system.as_str().starts_with(opening));
    assert_eq!(prompt.data, None);
    compare("subagent_custom_index", &prompt);
}

#[test]
fn sub_25_the_parts_stand_in_order_with_a_blank_line_between_and_none_is_empty() {
    let mut random = Random::new(25);
    let own = operator("Audit.");
    let (all_skills, all_hints) = (skills(), hints());
    let deferred = [
        by_operator("a"),
        SourcedText::Untrusted(UntrustedText::remote("b")),
    ];
    let in_order = [
        "<working_directory ",
        "<report_contract>",
        "<input_boundary>",
        "<data_channel>",
        "<skill_system>",
        "<available-deferred-tools>",
        "<mcp_routing_hints>",
    ];
    for _ in 0..2000 {
        let coin = |random: &mut Random| random.below(2) == 0;
        let take = |random: &mut Random, len: usize| random.below(len as u64 + 1) as usize;
        let inputs = SubagentPromptInputs {
            role: match random.below(3) {
                0 => SubagentRole::GeneralPurpose,
                1 => SubagentRole::Bash,
                _ => SubagentRole::Custom(&own),
            },
            bound_tools: TOOLS
                .iter()
                .copied()
                .filter(|_| coin(&mut random))
                .collect(),
            skills: PromptSkills {
                installed: &all_skills[take(&mut random, all_skills.len())..],
                evolution: coin(&mut random),
                slash_activation: coin(&mut random),
                ..PromptSkills::default()
            },
            deferred_tools: &deferred[take(&mut random, 2)..],
            routing_hints: &all_hints[take(&mut random, 2)..],
            mounts: &[],
            shell_available: coin(&mut random),
        };
        let prompt = render_subagent(&inputs);
        check(&prompt);
        let system = prompt.system.as_str();
        let places: Vec<usize> = in_order.iter().filter_map(|tag| system.find(tag)).collect();
        assert!(places.is_sorted(), "{system}");
        for place in places {
            assert!(system[..place].ends_with("\n\n"), "{system}");
        }
        for always in [
            "<report_contract>",
            "<input_boundary>",
            "hidden message of background",
        ] {
            assert!(system.contains(always), "{always}");
        }
        for never in [
            "ask_clarification",
            "`task`",
            "present_files",
            "skill_manage",
            "activates it",
            "<subagent_system>",
            "<memory_tool_system>",
        ] {
            assert!(!system.contains(never), "{never} in\n{system}");
        }
        for tool in TOOLS
            .iter()
            .filter(|tool| !inputs.bound_tools.contains(**tool))
        {
            for form in [format!("`{tool}`"), format!("{tool}(")] {
                assert!(!system.contains(&form), "{tool} is named in\n{system}");
            }
        }
    }
}

#[test]
fn pt_2_what_others_wrote_stands_in_the_data_message_alone() {
    let installed = vec![skill(
        |text| SourcedText::Untrusted(UntrustedText::user(canary(text))),
        "SKILLNAME",
        fawn::skills::Category::Custom,
        true,
    )];
    let mut hints = hints();
    hints[0].tool = canary("HINTTOOL");
    hints[0].keywords = vec![canary("HINTWORD")];
    let prompt = render_subagent(&SubagentPromptInputs {
        bound_tools: TOOLS.iter().copied().collect(),
        skills: PromptSkills {
            installed: &installed,
            ..PromptSkills::default()
        },
        deferred_tools: &[SourcedText::Untrusted(UntrustedText::remote(canary(
            "DEFERRED",
        )))],
        routing_hints: &hints,
        ..SubagentPromptInputs::default()
    });
    assert_contained(&prompt, &["SKILLNAME", "HINTTOOL", "HINTWORD", "DEFERRED"]);
}
