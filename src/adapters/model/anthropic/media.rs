//! Images and documents in the forms that other providers and LangChain use, as the messages format has them.

use serde_json::{Map, Value, json};

/// The block in the endpoint's form; `None` when it is in that form already, or in one that nobody knows.
pub(super) fn media(block: &Map<String, Value>) -> Option<Map<String, Value>> {
    if block.get("source").is_some_and(Value::is_object) {
        return None;
    }
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    let kind = text("type").unwrap_or_default();
    let source = match kind {
        "image_url" => {
            let url = match block.get("image_url") {
                Some(Value::Object(image)) => image.get("url").and_then(Value::as_str),
                other => other.and_then(Value::as_str),
            };
            url_source(url?)
        }
        _ => {
            let mime = text("mime_type").or_else(|| text("media_type"));
            let default_mime = if kind == "image" {
                "image/png"
            } else {
                "application/pdf"
            };
            let data = text("base64").or_else(|| text("data"));
            match (text("url"), data, text("text")) {
                (Some(url), ..) => url_source(url),
                (_, Some(data), _) if text("source_type") != Some("text") => json!({
                    "type": "base64", "media_type": mime.unwrap_or(default_mime), "data": data,
                }),
                (_, data, words) => match words.or(data) {
                    Some(words) => json!({
                        "type": "text", "media_type": mime.unwrap_or("text/plain"), "data": words,
                    }),
                    None => {
                        let id = text("file_id").or_else(|| text("id"))?;
                        json!({"type": "file", "file_id": id})
                    }
                },
            }
        }
    };
    let kind = if matches!(kind, "image" | "image_url") {
        "image"
    } else {
        "document"
    };
    let mut made = Map::new();
    made.insert("type".into(), kind.into());
    made.insert("source".into(), source);
    for name in ["cache_control", "title", "context", "citations"] {
        if let Some(value) = block.get(name).filter(|value| !value.is_null()) {
            made.insert(name.into(), value.clone());
        }
    }
    Some(made)
}

/// An address, or the data that a `data:` address holds.
fn url_source(url: &str) -> Value {
    let inline = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(','))
        .and_then(|(head, data)| Some((head.strip_suffix(";base64")?, data)));
    match inline {
        Some((mime, data)) => {
            let mime = mime.split(';').next().unwrap_or_default();
            let mime = if mime.is_empty() { "image/png" } else { mime };
            json!({"type": "base64", "media_type": mime, "data": data})
        }
        None => json!({"type": "url", "url": url}),
    }
}
