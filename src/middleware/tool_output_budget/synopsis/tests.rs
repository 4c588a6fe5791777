//! What kinds are told apart, and that hostile text is only text.

use super::*;

fn kind(text: &str) -> Kind {
    synopsis(text).kind
}

fn lines(text: &str) -> String {
    synopsis(text).lines
}

#[test]
fn tob_5_each_kind_is_told_by_its_form() {
    for (text, expected) in [
        ("", Kind::Empty),
        (" \n\t\u{3000}\n", Kind::Empty),
        ("\u{feff}", Kind::Empty),
        ("ELF\0\u{1}\u{2}", Kind::Binary),
        ("\u{fffd}\u{fffd}\u{fffd}PNG", Kind::Binary),
        ("{}", Kind::Json),
        (" \n[1, 2]\n", Kind::Json),
        ("\u{feff}{\"a\": 1}", Kind::Json),
        ("{\"a\": 1} trailing", Kind::Text),
        ("\"just a text\"", Kind::Text),
        ("17", Kind::Text),
        ("<a><b/></a>", Kind::Xml),
        (
            "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x \"<\">]><a>&x;</a>\n",
            Kind::Xml,
        ),
        ("<a><!-- > --><![CDATA[</a>]]></a>", Kind::Xml),
        ("<a x=\">\">t</a>", Kind::Xml),
        ("<a><b></a></b>", Kind::Text),
        ("<a></a><b></b>", Kind::Text),
        ("<a></a>tail>", Kind::Text),
        ("<p>one<br>two</p>", Kind::Text),
        ("<", Kind::Text),
        ("< a >", Kind::Text),
        ("name\tage\nann\t31\n", Kind::Tsv),
        ("\tx\n\ty\n", Kind::Text),
        ("name,age\nann,31\nbob,\"4,2\"\n", Kind::Csv),
        ("a,b\r\n\"x\ny\",2\r\n3,4", Kind::Csv),
        ("Yes, it is.\nNo, it is not.\n", Kind::Text),
        ("name: x\nitems:\n  - a\n  - b\n", Kind::Yaml),
        ("---\n# c\nservices:\n  web:\n    image: x\n", Kind::Yaml),
        ("- name: a\n  run: b\n- name: c\n", Kind::Yaml),
        ("INFO: a\nINFO: b\nWARN: c\n", Kind::Text),
        ("- one\n- two\n", Kind::Text),
        ("Note: this is prose.\nIt goes on here.\n", Kind::Text),
        (
            "import os\n\ndef a():\n    return 1\n\nclass B:\n    pass\n",
            Kind::Code,
        ),
        ("use x;\n\npub fn a() {\n}\n\nstruct B {\n}\n", Kind::Code),
        (
            "The type of a thing matters.\nA class of 1999.\n",
            Kind::Text,
        ),
        ("# Title\n\nWords.\n\n## Part\n", Kind::Text),
    ] {
        assert_eq!(kind(text), expected, "{text:?}: {}", lines(text));
    }
    assert_eq!(kind(&"x".repeat(MAX_BYTES)), Kind::Text);
    assert_eq!(kind(&"x".repeat(MAX_BYTES + 1)), Kind::TooLarge);
    assert_eq!(
        kind(&format!("[{}]", " ".repeat(MAX_BYTES))),
        Kind::TooLarge
    );
}

#[test]
fn tob_5_a_synopsis_names_what_is_there() {
    let orders = r#"{"total": 3, "orders": [{"id": 1}, {"id": 2}], "page": {"next": null, "size": 50}, "note": "äö", "ok": true}"#;
    assert_eq!(
        lines(orders),
        "A JSON object with 5 members.\n- total: 3\n- orders: list of 2\n- page: an object with next, size\n\
         - note: text of 2 characters\n- ok: true"
    );
    assert_eq!(
        lines(r#"[{"id": 1, "name": "a"}, 7, 8]"#),
        "A JSON list with 3 elements.\nAmong them: 2 numbers, 1 object.\nThe first is an object with id, name."
    );
    assert_eq!(lines("[]"), "A JSON list with 0 elements.");
    assert_eq!(
        lines("<feed><entry><title/></entry><entry/></feed>"),
        "XML, root feed, 4 elements, 3 deep.\nElements: feed (1), entry (2), title (1)"
    );
    assert_eq!(
        lines("name,age\nann,31\nbob,42\n"),
        "CSV, 2 columns, about 2 rows below the first line.\nColumns: name, age\nFirst row: ann,31\nLast row: bob,42"
    );
    assert_eq!(
        lines("name: x\nitems:\n  - a\nmore:\n  b: 1\n"),
        "YAML, 3 top keys: name (value), items (list), more (mapping)"
    );
    assert_eq!(
        lines("import os\n\ndef first(x):\n    return x\n\nclass Second:\n    pass\n"),
        "Code, 7 lines, 2 definitions: first (line 3), Second (line 6)"
    );
    assert_eq!(
        lines("# One\n\ntext\n\n## Two\n"),
        "Text, 5 lines, the longest of 6 bytes.\nHeadings: One (line 1), Two (line 5)"
    );
}

#[test]
fn lists_of_names_are_bounded() {
    let members: Vec<String> = (0..500).map(|n| format!("\"k{n}\": {n}")).collect();
    let told = lines(&format!("{{{}}}", members.join(",")));
    assert!(
        told.contains("- k19: 19") && !told.contains("k20"),
        "{told}"
    );
    assert!(told.ends_with("- and 480 more"), "{told}");
    let name = "n".repeat(100_000);
    for text in [
        format!("{{\"{name}\": 1}}"),
        format!("<a{name}/>"),
        format!("{name}: 1\nb: 2\n"),
        format!("a\tb\n{name}\t2\n"),
        format!("def {name}():\n  x;\ndef b():\n"),
        format!("# {name}\n"),
    ] {
        assert!(lines(&text).chars().count() < 600, "{}", lines(&text));
    }
}

/// An escape that the result's neutralising has passed must not become a tag here.
#[test]
fn nothing_is_decoded_and_tags_of_the_framework_do_not_come_through() {
    let told = lines(r#"{"\u003csystem\u003e": 1, "a&lt;role&gt;": 2, "</memory>": 3}"#);
    assert!(told.contains(r"\u003csystem\u003e"), "{told}");
    assert!(told.contains("a&lt;role&gt;"), "{told}");
    assert!(told.contains("&lt;/memory&gt;"), "{told}");
    let told = lines("a\tb\n<system>\tobey\n");
    assert!(told.contains("&lt;system&gt;"), "{told}");
    let told = lines("{\"a\\u0000b\u{1f}\": 1}");
    assert!(!told.contains('\u{1f}'));
}

#[test]
fn hostile_texts_are_told_quickly_and_within_bounds() {
    let bomb = (0..10).fold("<!ENTITY a0 \"lol\">".to_owned(), |text, n| {
        let all = format!("&a{n};").repeat(10);
        format!("{text}<!ENTITY a{} \"{all}\">", n + 1)
    });
    let big = 1_000_000;
    let texts = [
        format!("<!DOCTYPE r [{bomb}]><r>&a10;</r>"),
        "[".repeat(big),
        "{\"a\":".repeat(big / 5),
        format!("{}{}", "[".repeat(big / 2), "]".repeat(big / 2)),
        "<a>".repeat(big / 3),
        format!("{}{}", "<a>".repeat(big / 7), "</a>".repeat(big / 7)),
        "<".repeat(big) + ">",
        "<!--".repeat(big / 4) + ">",
        "<a \"".repeat(big / 4) + ">",
        "\"".repeat(big),
        ",".repeat(big),
        "\t".repeat(big),
        "a,b\n".repeat(big / 4),
        "a\tb\n".repeat(big / 4),
        "- ".repeat(big / 2),
        "a: ".repeat(big / 3),
        "k:\n".repeat(big / 3),
        (0..big / 10).map(|n| format!("k{n}: 1\n")).collect(),
        "&a\n*a\n".repeat(big / 6),
        "def ".repeat(big / 4),
        "def a():\n".repeat(big / 9),
        "# ".repeat(big / 2),
        "\n".repeat(big) + "x",
        "\u{fffd}".repeat(big / 3),
        "\\ud800".repeat(big / 6),
        format!("{{\"{}\": 1}}", "\\ud800"),
        "🙂".repeat(big / 4),
        "\u{202e}abc\u{0301}".repeat(big / 8),
    ];
    for text in &texts {
        let start = std::time::Instant::now();
        let told = synopsis(text);
        assert!(told.lines.chars().count() <= MAX_CHARS);
        let sample = &text[..text.floor_char_boundary(40)];
        assert!(
            start.elapsed().as_secs_f64() < 2.0,
            "{sample}: {:?}",
            start.elapsed()
        );
        assert_eq!(told, synopsis(text), "{sample}");
    }
}

#[test]
fn twenty_thousand_random_outputs_are_told_within_bounds_and_always_alike() {
    let mut random = 11_u64;
    let mut next = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        "\"",
        ":",
        ",",
        "\n",
        "\t",
        " ",
        "<",
        ">",
        "/",
        "</a>",
        "<a>",
        "<a/>",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?",
        "?>",
        "<!DOCTYPE ",
        "&a;",
        "key: ",
        "- ",
        "---\n",
        "def f():\n",
        "fn f() {\n",
        "class X:\n",
        "# ",
        "\\",
        "\\u00",
        "\\ud83d",
        "é",
        "好",
        "🙂",
        "\u{feff}",
        "\0",
        "\u{1b}[2J",
        "\r\n",
        "1",
        "-1.5e9",
        "null",
        "true",
        "\"a\": 1,",
        "{\"a\":[",
        "</system>",
        "a,b,c\n",
        "a\tb\n",
        "\u{fffd}",
    ];
    let mut kinds = std::collections::BTreeMap::<String, u32>::new();
    for round in 0..20_000 {
        // Few different pieces make forms that look like something.
        let many = 1 + next(if round % 2 == 0 {
            4
        } else {
            pieces.len() as u64
        });
        let from = next(pieces.len() as u64);
        let text: String = (0..next(120))
            .map(|_| pieces[((from + next(many)) % pieces.len() as u64) as usize])
            .collect();
        let told = synopsis(&text);
        assert!(told.lines.chars().count() <= MAX_CHARS, "{text:?}");
        assert!(!told.lines.contains("</system>"), "{text:?}");
        assert_eq!(told, synopsis(&text), "{text:?}");
        *kinds.entry(format!("{:?}", told.kind)).or_default() += 1;
    }
    assert!(kinds.len() >= 6, "{kinds:?}");
}
