//! What YAML texts mean, and what hostile ones cannot do.

use std::time::{Duration, Instant};

use serde_json::json;

use super::*;

fn read(text: &str) -> Value {
    from_yaml(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn refusal(text: &str) -> String {
    match from_yaml(text) {
        Ok(value) => panic!("{:?} gives {value}", &text[..text.len().min(80)]),
        Err(error) => {
            assert_eq!(error.code, ErrorCode::AssemblyInvalid);
            error.message
        }
    }
}

#[test]
fn plain_scalars_have_the_types_of_yaml_1_1() {
    // As PyYAML 6 reads them.
    let cases = [
        (
            "yes No ON off True FALSE",
            json!([true, false, true, false, true, false]),
        ),
        ("y n tRUE yEs", json!(["y", "n", "tRUE", "yEs"])),
        (
            "~ null Null NULL nULL",
            json!([null, null, null, null, "nULL"]),
        ),
        (
            "0 -0 +5 1_000 1_ 010 -010 0_7 0b101 0x1F -0x10",
            json!([0, 0, 5, 1000, 1, 8, -8, 7, 5, 31, -16]),
        ),
        (
            "08 0o17 0X1F 0x _1 1e3 1.5e3 -.5",
            json!(["08", "0o17", "0X1F", "0x", "_1", "1e3", "1.5e3", "-.5"]),
        ),
        (
            "1:30 -1:30 12:30:45 1:60 01:30",
            json!([90, -90, 45045, "1:60", "01:30"]),
        ),
        (
            "0.1 1. .5 -1.5 1_0.5 1.5e+3 1.5E-3 .5e+1",
            json!([0.1, 1.0, 0.5, -1.5, 10.5, 1500.0, 0.0015, 5.0]),
        ),
        ("1:30.5 -01:30.5", json!([90.5, -90.5])),
        (
            "18446744073709551615 -9223372036854775808",
            json!([u64::MAX, i64::MIN]),
        ),
        (
            "123456789012345678901234567890 0x1ffffffffffffffff",
            json!([1.2345678901234568e29, 36893488147419103231.0]),
        ),
        (
            ".inf -.INF .nan 1.5e+400 2024-01-02",
            json!([".inf", "-.INF", ".nan", "1.5e+400", "2024-01-02"]),
        ),
        (
            "= << 1.2.3 a:b a#b",
            json!(["=", "<<", "1.2.3", "a:b", "a#b"]),
        ),
    ];
    for (texts, expected) in cases {
        let read: Vec<Value> = texts
            .split(' ')
            .map(|text| read(&format!("k: {text}"))["k"].take())
            .collect();
        assert_eq!(Value::from(read), expected, "{texts}");
    }
}

#[test]
fn quotes_and_tags_say_the_type() {
    assert_eq!(
        read("[\"yes\", '1', ! 12, !!str 12, !!int '0x1f', !!float 2, !!bool 'YES', !!null x]"),
        json!(["yes", "1", 12, "12", 31, 2.0, true, null])
    );
    assert_eq!(
        read("a: !!map {b: !!seq [c]}\nd: !!timestamp 2024-01-02"),
        json!({"a": {"b": ["c"]}, "d": "2024-01-02"})
    );
    for (text, tag) in [
        (
            "a: !!python/object/apply:os.system [x]",
            "!!python/object/apply:os.system",
        ),
        ("a: !foo x", "!foo"),
        ("a: !!binary aGk=", "!!binary"),
        ("a: !!set {x}", "!!set"),
        ("a: !!map [b]", "!!map"),
        ("a: !!str {b: c}", "!!str"),
    ] {
        assert!(refusal(text).contains(tag), "{text}");
    }
    assert_eq!(
        refusal("a: 1\nb: !!int x"),
        "no usable YAML: what is tagged !!int is no value of that type, at line 2, column 10"
    );
}

#[test]
fn structures_follow_pyyaml() {
    let cases = [
        ("", json!(null)),
        ("# only a comment\n", json!(null)),
        ("---\na: 1\n...\n", json!({"a": 1})),
        ("a: 1\nb: 2\na: 3", json!({"a": 3, "b": 2})),
        (
            "1: a\nyes: b\n~: c",
            json!({"1": "a", "yes": "b", "~": "c"}),
        ),
        ("a:\r\n- b\r\n- c\r\n", json!({"a": ["b", "c"]})),
        ("a: |\n  x\n  y", json!({"a": "x\ny"})),
        ("a: >\n  x\n  y\n\n  z\n", json!({"a": "x y\nz\n"})),
        ("a: &x [1, 2]\nb: *x", json!({"a": [1, 2], "b": [1, 2]})),
        ("a: &k b\n*k : c", json!({"a": "b", "b": "c"})),
        // Own members win over merged ones; of a list the first has the last word.
        ("<<: [{a: 1}, {a: 2, b: 3}]\nb: 4", json!({"a": 1, "b": 4})),
        ("\"<<\": {a: 1}", json!({"<<": {"a": 1}})),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text).to_string(), expected.to_string(), "{text:?}");
    }
}

#[test]
fn what_is_no_document_is_refused_with_its_place() {
    assert_eq!(
        refusal("a: 1\n---\nb: 2"),
        "no usable YAML: a second document begins where one is expected, at line 2, column 1"
    );
    for text in [
        "a: b: c",
        "[a",
        "{a: b",
        "a: \"x",
        "a: *x",
        "? [a]\n: b",
        "? {a: b}\n: c",
        "<<: 1",
        "<<: [1]",
        "a: %x",
        "a: @x",
        "a: `x`",
        "a: - b",
        "a:\n  b: c\n d: e",
    ] {
        let message = refusal(text);
        assert!(message.contains(", at line "), "{text}: {message}");
    }
    assert!(refusal("&x [*x]").contains("inside of what it names"));
}

#[test]
fn nesting_is_bounded_through_aliases_too() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(from_yaml(&nested(MAX_DEPTH)).is_ok());
    refusal(&nested(MAX_DEPTH + 1));
    refusal(&"- ".repeat(MAX_DEPTH + 1));
    refusal(&"- ".repeat(500_000));
    refusal(&"[".repeat(1_000_000));
    refusal(&"? ".repeat(500_000));
    // Forty levels below an alias that stands at forty.
    let text = format!(
        "a: &a {}\nb: {}*a{}",
        nested(40),
        "[".repeat(40),
        "]".repeat(40)
    );
    assert!(refusal(&text).contains("deeper than 64"));
}

#[test]
fn aliases_cannot_multiply_a_document() {
    let mut laughs = String::from("a0: &a0 [lol, lol, lol]\n");
    for level in 1..50 {
        let before = format!("*a{}, ", level - 1).repeat(9);
        laughs += &format!("a{level}: &a{level} [{before}]\n");
    }
    assert!(refusal(&laughs).contains("add more than"));
    // One long text, many times; and anchors inside of anchors, whose copies would add up.
    let long = format!(
        "a: &a {}\nb: [{}]",
        "x".repeat(100_000),
        "*a, ".repeat(1000)
    );
    assert!(refusal(&long).contains("add more than"));
    let nested = format!(
        "{}{}{}",
        "&a [".repeat(60),
        "x, ".repeat(300_000),
        "]".repeat(60)
    );
    assert!(refusal(&nested).contains("add more than"));
    // What people write passes.
    let plain = format!(
        "base: &base {{a: 1, b: [1, 2]}}\nall:\n{}",
        "- *base\n".repeat(1000)
    );
    assert_eq!(read(&plain)["all"].as_array().map(Vec::len), Some(1000));
}

#[test]
fn size_is_bounded() {
    assert!(from_yaml(&"#".repeat(MAX_BYTES)).is_ok());
    refusal(&"#".repeat(MAX_BYTES + 1));
}

/// The texts that parsers of this family are known to spend quadratic time on, at the largest size.
#[test]
fn no_text_of_the_largest_size_stalls() {
    let mut slow = Vec::new();
    for part in [
        "[",
        "]",
        "{",
        "}",
        "- ",
        "-\n",
        "? ",
        ": ",
        "a: ",
        "a:\n",
        ",",
        "[,",
        "[a,",
        "{a,",
        "{a: b, ",
        "'",
        "\"",
        "\"\\\n",
        "'\n",
        "\n",
        "#\n",
        "# ",
        " ",
        "\t",
        "\t\n",
        "&a ",
        "*a ",
        "&a x\n",
        "!a ",
        "!!str ",
        "! ",
        "|\n",
        "> ",
        "|\n x\n",
        "%a\n",
        "%TAG ! x\n",
        "---\n",
        "...\n",
        "a",
        "a ",
        "a\n",
        "é",
        "\u{2028}",
        "\u{feff}",
        "\0",
        "\r",
        "\\",
        "a: |\n  x\n",
        "a: 'x\n  y'\n",
        "- - - a\n",
        "? a\n",
        "k: {a: [b, {c: d}]}\n",
        "a: &a {<<: *a}\n",
        "@",
        "`",
        "<<: ",
        "0",
        "1_",
        "1:",
        "0x",
        "'a': ",
        "\"a\" :",
    ] {
        let count = MAX_BYTES / part.len() - 40;
        for (before, after) in [
            ("", ""),
            ("a: ", ""),
            ("[", "]"),
            ("{", "}"),
            ("\"", "\""),
            ("|\n ", ""),
            ("- ", "\n- b: ?"),
        ] {
            let text = format!("{before}{}{after}", part.repeat(count));
            let began = Instant::now();
            let _ = from_yaml(&text);
            let took = began.elapsed();
            if took > Duration::from_secs(5) {
                slow.push((before, part, took));
            }
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}

/// Deterministic, so that a failure can be met again.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn of<'a>(&mut self, parts: &[&'a str]) -> &'a str {
        parts[self.below(parts.len())]
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 6 } else { 8 }) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 => json!(self.below(1000) as i64 - 500),
            3 => json!((self.below(1000) as f64 - 500.0) * 10f64.powi(self.below(60) as i32 - 30)),
            4 | 5 => Value::from(self.text()),
            6 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let members = (0..self.below(4)).map(|_| (self.text(), self.value(depth - 1)));
                Value::Object(members.collect())
            }
        }
    }

    fn text(&mut self) -> String {
        const PARTS: &[&str] = &[
            "a",
            "yes",
            "null",
            "~",
            "1",
            "1:30",
            "0x1",
            ".5",
            "-",
            ": ",
            " #",
            "\n",
            "\r",
            "\t",
            "\"",
            "'",
            "\\",
            "{",
            "[",
            "&a",
            "*a",
            "!",
            "|",
            "%",
            "@",
            "<<",
            "=",
            "é",
            "😀",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "\u{0}",
            "\u{7f}",
            "\u{fffe}",
            " ",
            "---",
            "...",
            "2024-01-02",
            "No",
            "e",
            "/x",
            "word word",
        ];
        let count = self.below(4);
        let mut text: String = (0..count).map(|_| self.of(PARTS)).collect();
        if self.below(50) == 0 {
            text += &"long ".repeat(300);
        }
        text
    }
}

#[test]
fn what_is_written_is_read_back() {
    let mut random = Random(1);
    for _ in 0..5000 {
        let value = random.value(5);
        let text = to_yaml(&value);
        assert_eq!(from_yaml(&text).as_ref(), Ok(&value), "{text}");
    }
    let value = json!({"name": "code-bot", "skills": ["a", "yes"], "model_settings": {"temperature": 1e30}, "empty": [], "none": null});
    assert_eq!(
        to_yaml(&value),
        "name: code-bot\nskills:\n  - a\n  - \"yes\"\nmodel_settings:\n  temperature: 1.0e+30\nempty: []\nnone: null\n"
    );
}

#[test]
fn no_text_makes_it_panic() {
    const PARTS: &[&str] = &[
        "a",
        "b: ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "\"",
        "'",
        "\n",
        "\n  ",
        "\n    ",
        "? ",
        ": ",
        "&x ",
        "*x",
        "|",
        ">",
        "|2\n",
        ">-9\n",
        "!!str ",
        "!!int ",
        "!<tag:x> ",
        "# c",
        "1",
        "yes",
        "---\n",
        "...\n",
        "~",
        "<<: ",
        "\t",
        "%YAML 1.1\n",
        "%TAG ! y\n",
        "@",
        "é",
        "😀",
        "\0",
        "\\x",
        "\\u12",
        "\u{feff}",
        "\r",
        "0x_",
        "+",
        "-",
        ".",
        "-:",
        "+.e",
        "1:",
        "1:2.",
        "\u{85}",
    ];
    let mut random = Random(2);
    for round in 0..60_000 {
        let mut text: String = (0..1 + random.below(14))
            .map(|_| random.of(PARTS))
            .collect();
        if round % 4 == 0 {
            // A text that is fine but for one place.
            text = to_yaml(&random.value(3));
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            text.insert_str(places[random.below(places.len())], random.of(PARTS));
        }
        let _ = from_yaml(&text);
    }
}
