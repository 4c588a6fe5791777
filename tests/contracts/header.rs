//! `include/fawn.h` is what `src/ffi` says, and it is a header that every C and C++ compiler takes.

use std::path::PathBuf;
use std::process::Command;

use fawn::ffi::status::OUTCOMES;
use fawn::protocol::describe::ABI_VERSION;
use fawn::protocol::error::ErrorCode;

use crate::repository::{in_step, read, root, update};

/// Wraps text into comment lines of at most 100 columns.
fn comment(text: &str) -> String {
    let mut lines = vec![String::from("/*")];
    for word in text.split_whitespace() {
        let line = lines.last_mut().unwrap();
        if line.len() + 1 + word.len() > 97 {
            lines.push(format!(" * {word}"));
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    format!("{} */\n", lines.join("\n"))
}

/// The constants that cbindgen cannot write: those with a cast or a sign, from the lists that the library itself uses.
fn constants() -> String {
    let mut text = format!(
        "\n/* The version of the ABI that this header describes, for fawn_runtime_new. */\n\
         #define FAWN_ABI_VERSION {ABI_VERSION}u\n\n\
         /* Length that means: the text ends at its first NUL. */\n\
         #define FAWN_NTS ((size_t)-1)\n\n\
         /* Outcomes that are no errors. */\n\n"
    );
    for (status, name, meaning) in OUTCOMES {
        text += &format!("{}#define {name} {status}\n\n", comment(meaning));
    }
    text += "/* Errors. The numbers are grouped, with gaps, and are never used again for something else. */\n\n";
    for code in ErrorCode::ALL {
        let name = code.name().to_uppercase();
        let meaning = comment(code.meaning());
        text += &format!("{meaning}#define FAWN_ERR_{name} ({})\n\n", code.status());
    }
    text.trim_end().to_owned() + "\n"
}

/// The header as it should be.
fn generated() -> String {
    let mut config = cbindgen::Config::from_file(root().join("cbindgen.toml")).unwrap();
    let fixed = config.after_includes.take().unwrap_or_default();
    config.after_includes = Some(format!("{}\n{}", fixed.trim_end(), constants()));
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root().join("src/ffi/mod.rs"))
        .generate()
        .unwrap();
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).unwrap();
    // No line ends in a blank, and no two empty lines follow each other, whatever the parts end with.
    let mut tidy = String::new();
    for line in text.lines().map(str::trim_end) {
        if !(line.is_empty() && tidy.ends_with("\n\n")) {
            tidy += line;
            tidy += "\n";
        }
    }
    tidy
}

#[test]
fn header_is_in_step() {
    in_step("include/fawn.h", &generated());
}

/// Names of the functions that the header declares, sorted.
pub fn functions() -> Vec<String> {
    let header = read("include/fawn.h");
    // In comments functions are named without what stands before them in a declaration.
    let declarations = header.split("FAWN_API").skip(1);
    let mut names: Vec<String> = declarations
        .filter_map(|text| {
            let (before, _) = text.split_once('(')?;
            let name = before.rsplit([' ', '*', '\n']).next()?;
            name.starts_with("fawn_").then(|| name.to_owned())
        })
        .collect();
    names.sort();
    names
}

#[test]
fn every_exported_function_of_the_source_is_in_the_header() {
    let mut in_source = Vec::new();
    for file in crate::repository::files("src/ffi", ".rs") {
        let source = read(file);
        for part in source.split("extern \"C\" fn ").skip(1) {
            let name = part.split('(').next().unwrap();
            if name.starts_with("fawn_") {
                in_source.push(name.to_owned());
            }
        }
    }
    in_source.sort();
    if !update() {
        assert_eq!(functions(), in_source);
    }
}

#[test]
fn signatures_are_those_of_the_design() {
    if update() {
        return;
    }
    // What bindings were written against: functions are added, never changed.
    let header = read("include/fawn.h");
    let flat: String = header.split_whitespace().collect::<Vec<_>>().join(" ");
    let flat = flat.replace("struct fawn_buf *", "fawn_buf *");
    for signature in [
        "uint32_t fawn_abi_version(void);",
        "const char *fawn_version(void);",
        "const char *fawn_status_name(int32_t status);",
        "int32_t fawn_describe(const char *what, size_t len, fawn_buf *out);",
        "void fawn_buf_free(fawn_buf *buf);",
        "int32_t fawn_reduce(const char *channel, size_t channel_len, const char *json, size_t len, fawn_buf *out);",
        "int32_t fawn_messages_convert(const char *json, size_t len, fawn_buf *out);",
        "int32_t fawn_runtime_new(uint32_t abi, const char *json, size_t len, fawn_runtime *out, fawn_buf *err);",
        "int32_t fawn_runtime_submit(fawn_runtime runtime, const char *json, size_t len, fawn_buf *out);",
        "int32_t fawn_runtime_stats(fawn_runtime runtime, fawn_buf *out);",
        "int32_t fawn_runtime_shutdown(fawn_runtime runtime, int64_t timeout_ms, fawn_buf *out);",
        "void fawn_runtime_free(fawn_runtime runtime);",
        "int32_t fawn_subagents_new(fawn_runtime runtime, const char *json, size_t len, fawn_subagents *out, fawn_buf *err);",
        "int32_t fawn_subagents_start(fawn_subagents subagents, fawn_buf *out);",
        "int32_t fawn_subagents_stop(fawn_subagents subagents, int64_t timeout_ms, fawn_buf *out);",
        "int32_t fawn_subagents_stats(fawn_subagents subagents, fawn_buf *out);",
        "void fawn_subagents_free(fawn_subagents subagents);",
        "int32_t fawn_assembly_new(fawn_runtime runtime, const char *json, size_t len, fawn_assembly *out, fawn_buf *err);",
        "int32_t fawn_assembly_descriptor(fawn_assembly assembly, fawn_buf *out);",
        "void fawn_assembly_free(fawn_assembly assembly);",
        "int32_t fawn_thread_open(fawn_runtime runtime, const char *json, size_t len, fawn_thread *out, fawn_buf *err);",
        "int32_t fawn_thread_update(fawn_thread thread, const char *json, size_t len, fawn_buf *out);",
        "int32_t fawn_thread_state(fawn_thread thread, const char *json, size_t len, fawn_buf *out);",
        "int32_t fawn_thread_history(fawn_thread thread, const char *json, size_t len, fawn_buf *out);",
        "int32_t fawn_thread_goal(fawn_thread thread, const char *json, size_t len, fawn_buf *out);",
        "void fawn_thread_free(fawn_thread thread);",
        "int32_t fawn_queue_new(fawn_runtime runtime, const char *json, size_t len, fawn_queue *out, fawn_buf *err);",
        "int32_t fawn_queue_take(fawn_queue queue, int64_t timeout_ms, uint32_t max_events, fawn_buf *out);",
        "int32_t fawn_queue_interrupt(fawn_queue queue);",
        "int32_t fawn_queue_set_wakeup(fawn_queue queue, fawn_wakeup_fn wakeup, uintptr_t user_data, fawn_drop_fn drop, fawn_buf *err);",
        "void fawn_queue_free(fawn_queue queue);",
        "int32_t fawn_run_start(fawn_assembly assembly, fawn_thread thread, fawn_queue queue, const char *json, size_t len, fawn_run *out, fawn_buf *err);",
        "int32_t fawn_run_submit(fawn_run run, const char *json, size_t len, fawn_buf *out);",
        "int32_t fawn_run_wait(fawn_run run, int64_t timeout_ms, fawn_buf *out);",
        "void fawn_run_free(fawn_run run);",
        "int32_t fawn_call_emit(fawn_runtime runtime, uint64_t call_id, const char *json, size_t len, fawn_buf *err);",
        "int32_t fawn_call_finish(fawn_runtime runtime, uint64_t call_id, const char *json, size_t len, fawn_buf *err);",
        "typedef uint64_t fawn_runtime;",
        "typedef void (*fawn_wakeup_fn)(uintptr_t user_data);",
        "typedef void (*fawn_drop_fn)(uintptr_t user_data);",
    ] {
        assert!(flat.contains(signature), "the header lacks: {signature}");
    }
}

/// A compiler and the standards it is asked for.
struct Compiler {
    command: &'static str,
    ending: &'static str,
    standards: &'static [&'static str],
    flags: &'static [&'static str],
}

const COMPILERS: [Compiler; 2] = [
    Compiler {
        command: "cc",
        ending: "c",
        standards: &["c99", "c11", "c17"],
        flags: &["-Wstrict-prototypes"],
    },
    Compiler {
        command: "c++",
        ending: "cpp",
        standards: &["c++11", "c++17", "c++20"],
        flags: &[],
    },
];

#[test]
fn header_compiles_alone_and_twice_in_every_standard() {
    if update() {
        return;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("header");
    std::fs::create_dir_all(&folder).unwrap();
    for compiler in COMPILERS {
        if Command::new(compiler.command)
            .arg("--version")
            .output()
            .is_err()
        {
            eprintln!("skipped: there is no {}", compiler.command);
            continue;
        }
        let source = folder.join(format!("twice.{}", compiler.ending));
        std::fs::write(
            &source,
            "#include \"fawn.h\"\n#include \"fawn.h\"\n\
             int main(void) { fawn_buf buf = {0, 0, 0}; fawn_buf_free(&buf);\n\
             switch (fawn_queue_interrupt(0)) { case FAWN_OK: case FAWN_ERR_HANDLE: return 0; }\n\
             return FAWN_NTS == (size_t)-1 && FAWN_ABI_VERSION == fawn_abi_version(); }\n",
        )
        .unwrap();
        for standard in compiler.standards {
            let output = Command::new(compiler.command)
                .arg(format!("-std={standard}"))
                .args([
                    "-Wall",
                    "-Wextra",
                    "-Wpedantic",
                    "-Werror",
                    "-Wundef",
                    "-fsyntax-only",
                ])
                .args(compiler.flags)
                .arg("-I")
                .arg(root().join("include"))
                .arg(&source)
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{} -std={standard}:\n{}",
                compiler.command,
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}
