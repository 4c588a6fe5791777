//! Makes text of an endpoint fit to be shown: no secrets, no control characters, not too long.

/// Most characters of an endpoint's text that go into an error.
pub(crate) const MAX_TEXT_CHARS: usize = 1000;

/// Beginnings of secrets are masked from this length on, where a text ends with one.
const MIN_START_BYTES: usize = 4;

const MASK: &str = "[redacted]";

/// The secrets of one endpoint.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    /// Longest first, so that a secret inside another does not leave the rest of that one behind.
    secrets: Vec<String>,
}

impl Redactor {
    /// Adds a secret. Shorter texts than `min_bytes` stay visible: they would mask half of every sentence.
    pub(crate) fn add(&mut self, secret: &str, min_bytes: usize) {
        let quoted = format!("{secret:?}");
        let escaped = quoted.trim_matches('"').to_owned();
        for form in [secret.to_owned(), percent_encoded(secret), escaped] {
            if form.len() >= min_bytes && !self.secrets.contains(&form) {
                self.secrets.push(form);
            }
        }
        self.secrets
            .sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// `text` without control characters and secrets, cut to [`MAX_TEXT_CHARS`].
    pub(crate) fn clean(&self, text: &str) -> String {
        // Control characters go first: a secret that is broken up by them must not get through.
        let mut clean: String = text
            .chars()
            .map(|c| if c.is_whitespace() { ' ' } else { c })
            .filter(|c| !c.is_control() && !is_format(*c))
            .collect();
        for secret in &self.secrets {
            if clean.contains(secret.as_str()) {
                clean = clean.replace(secret.as_str(), MASK);
            }
        }
        // The text may be an excerpt that ends inside a secret.
        for secret in &self.secrets {
            let cut = secret
                .char_indices()
                .map(|(end, _)| &secret[..end])
                .filter(|start| start.len() >= MIN_START_BYTES)
                .rfind(|start| clean.ends_with(start));
            if let Some(start) = cut {
                clean.truncate(clean.len() - start.len());
                clean.push_str(MASK);
            }
        }
        match clean.char_indices().nth(MAX_TEXT_CHARS) {
            Some((end, _)) => format!("{}…", &clean[..end]),
            None => clean,
        }
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

/// Invisible characters that reorder or hide text.
fn is_format(c: char) -> bool {
    matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

/// `text` as it stands in a URL.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor(secrets: &[&str]) -> Redactor {
        let mut redactor = Redactor::default();
        secrets.iter().for_each(|secret| redactor.add(secret, 4));
        redactor
    }

    #[test]
    fn secrets_are_masked_in_every_form() {
        let redactor = redactor(&["sk+key/1", "sk+key/1-longer"]);
        assert_eq!(
            redactor.clean("a sk+key/1, sk%2Bkey%2F1, sk+key/1-longer and sk+\u{0}key\u{200B}/1"),
            "a [redacted], [redacted], [redacted] and [redacted]"
        );
    }

    #[test]
    fn control_characters_go_and_length_is_bounded() {
        let redactor = redactor(&[]);
        assert_eq!(redactor.clean("a\u{1b}[31m\nb\u{202E}"), "a[31m b");
        let long = redactor.clean(&"é".repeat(5000));
        assert_eq!(long.chars().count(), MAX_TEXT_CHARS + 1);
    }

    #[test]
    fn the_beginning_of_a_secret_at_the_end_of_an_excerpt_is_masked() {
        let redactor = redactor(&["sk-secret", "other\"quoted"]);
        assert_eq!(redactor.clean("it begins sk-sec"), "it begins [redacted]");
        assert_eq!(redactor.clean("sk-secretsk-s"), "[redacted][redacted]");
        assert_eq!(redactor.clean("sk-sec is no end"), "sk-sec is no end");
        assert_eq!(redactor.clean("\"other\\\"quoted\""), "\"[redacted]\"");
    }

    #[test]
    fn a_secret_at_the_cut_is_masked_before_the_cut() {
        let text = format!("{}sk-secret", "x".repeat(MAX_TEXT_CHARS - 4));
        assert!(!redactor(&["sk-secret"]).clean(&text).contains("sk-s"));
    }
}
