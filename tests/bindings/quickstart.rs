//! The quickstart says the same in every language, in its first process and in a second one on the same thread.

use crate::languages::Language;
use crate::programs::{empty_scratch, tail};

/// What the quickstart of a language prints in two processes.
fn two_starts(language: Language) -> [String; 2] {
    let folder = language.folder();
    let program = language.build(&language.example("quickstart"));
    let kept = empty_scratch(&format!("quickstart_{folder}"));
    let kept = kept.to_str().unwrap();
    ["What is the weather in Paris?", "And in Oslo?"].map(|question| program.run(&[kept, question]))
}

#[test]
fn every_quickstart_prints_the_same_lines() {
    if !Language::C.is_ready() {
        return;
    }
    let right = two_starts(Language::C);
    assert!(
        right[0].contains("get_weather(Paris)") && right[0].contains("In Paris it is clear"),
        "{}",
        right[0]
    );
    assert!(
        right[1].starts_with("(last time: In Paris it is clear") && right[1].contains("Oslo"),
        "the second start does not know of the first:\n{}",
        right[1]
    );
    for language in Language::ALL
        .into_iter()
        .skip(1)
        .filter(|one| one.is_ready())
    {
        let found = two_starts(language);
        for (found, right) in found.iter().zip(&right) {
            assert!(
                found == right,
                "{language:?} prints\n{}where C prints\n{}",
                tail(found),
                tail(right)
            );
        }
    }
}
