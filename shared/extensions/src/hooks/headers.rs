//! The headers of hooks that are sent to addresses. Their values may be secrets, so a hook that is read has none of them
//! ([`ShownValue`]). [`hidden_headers`] reads them alone, and [`split_hooks`] takes them out of a file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shared_types::event::{HookHandler, ShownValue};

use super::{Written, written_hooks};
use crate::{Invalid, cleaned};

/// Most headers of a hook.
const MAX_HEADERS: usize = 32;

/// Most bytes of all of them.
const MAX_BYTES: usize = 16 * 1024;

/// Headers that Gantry or the connection sets.
const SET_BY_GANTRY: [&str; 5] = [
    "connection",
    "content-length",
    "host",
    "idempotency-key",
    "transfer-encoding",
];

/// The hidden values of the headers of a file's hooks.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookSecrets(BTreeMap<u32, HiddenHeaders>);

/// Those of one hook.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HiddenHeaders {
    /// The address of the hook, which alone gets them.
    url: String,
    values: BTreeMap<String, String>,
}

impl HookSecrets {
    /// True if there are none.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// True if a value is left open (`(hidden)`).
    pub fn has_open(&self) -> bool {
        let mut values = self.0.values().flat_map(|of| of.values.values());
        values.any(|value| value == ShownValue::HIDDEN)
    }

    /// Takes what this one leaves open from the one in whose place it comes, where it goes to the same address.
    ///
    /// # Errors
    /// The one before has no such value for that address.
    pub fn keep(&mut self, before: &Self) -> Result<(), Invalid> {
        for hook in self.0.values_mut() {
            let is_open = |(_, value): &(&String, &mut String)| *value == ShownValue::HIDDEN;
            for (name, value) in hook.values.iter_mut().filter(is_open) {
                let mut same = before.0.values().filter(|before| before.url == hook.url);
                let known = same.find_map(|before| before.values.get(name));
                *value = known.cloned().ok_or_else(|| {
                    Invalid::new(format!(
                        "no value of {} is stored for the address {}: write it",
                        cleaned(name, 64),
                        cleaned(&hook.url, 256)
                    ))
                })?;
            }
        }
        Ok(())
    }

    /// The hidden values of the hook at this place of its file, if it is sent to this address. Logs of earlier releases
    /// do not say the place: then they are those that all hooks with this address have.
    pub fn of(&mut self, in_file: Option<u32>, url: &str) -> BTreeMap<String, String> {
        let hidden = match in_file {
            Some(place) => self.0.remove(&place).filter(|hidden| hidden.url == url),
            None => {
                let mut same = self.0.values().filter(|hidden| hidden.url == url);
                let first = same.next().cloned();
                first.filter(|first| same.all(|hidden| hidden.values == first.values))
            }
        };
        hidden.map(|hidden| hidden.values).unwrap_or_default()
    }
}

impl fmt::Debug for HookSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookSecrets")
    }
}

/// The hidden values of the headers of a file's hooks.
///
/// # Errors
/// The text has another form.
pub fn hidden_headers(text: &str) -> Result<HookSecrets, Invalid> {
    split_hooks(text).map(|(_, secrets)| secrets)
}

/// Parts a file of hooks into a text that may be shown and the values of headers that may not.
///
/// # Errors
/// The text has another form.
pub fn split_hooks(text: &str) -> Result<(String, HookSecrets), Invalid> {
    let settings: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| Invalid::new(format!("it is no JSON object: {error}")))?;
    let mut shown = Value::Object(settings.clone());
    let mut secrets = HookSecrets::default();
    let (written, _) = written_hooks(settings)?;
    let mut read = BTreeSet::new();
    for (in_file, Written { hook, values, at }) in (0..).zip(written) {
        let HookHandler::Http { url, headers } = hook.handler else {
            continue;
        };
        read.insert(at.clone());
        let is_hidden = |(name, _): &(String, String)| headers[name] == ShownValue::Hidden;
        let values: BTreeMap<_, _> = values.into_iter().filter(is_hidden).collect();
        let (event, group, handler) = at;
        for name in values.keys() {
            shown["hooks"][&event][group]["hooks"][handler]["headers"][name] =
                ShownValue::HIDDEN.into();
        }
        if !values.is_empty() {
            secrets.0.insert(in_file, HiddenHeaders { url, values });
        }
    }
    hide_unread(&mut shown, &read);
    Ok((shown.to_string(), secrets))
}

/// Hides the headers of hooks that are not used: their values may be secrets as well.
fn hide_unread(shown: &mut Value, read: &BTreeSet<(String, usize, usize)>) {
    let events = shown["hooks"].as_object_mut().into_iter().flatten();
    for (event, groups) in events {
        let groups = groups.as_array_mut().into_iter().flatten().enumerate();
        for (group_at, group) in groups {
            let hooks = group.get_mut("hooks").and_then(Value::as_array_mut);
            for (place, hook) in hooks.into_iter().flatten().enumerate() {
                if let Some(headers) = hook.get_mut("headers")
                    && !read.contains(&(event.clone(), group_at, place))
                {
                    *headers = ShownValue::HIDDEN.into();
                }
            }
        }
    }
}

/// Checks the headers of a hook that is sent to an address.
///
/// # Errors
/// A hook may not have one of them, or so many; the words name it, and have no value.
pub fn check_headers(headers: &BTreeMap<String, String>) -> Result<(), Invalid> {
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if headers.len() > MAX_HEADERS || bytes > MAX_BYTES {
        return Err(Invalid::new(format!(
            "it has more than {MAX_HEADERS} headers, or {} KiB of them",
            MAX_BYTES / 1024
        )));
    }
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    for (name, value) in headers {
        let shown = cleaned(name, 64);
        if name.is_empty() || !name.bytes().all(is_letter) {
            return Err(Invalid::new(format!("{shown:?} is no name of a header")));
        }
        if SET_BY_GANTRY.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(Invalid::new(format!(
                "the header {shown} is set by Gantry: leave it out"
            )));
        }
        if value.contains(char::is_control) {
            return Err(Invalid::new(format!(
                "the value of the header {shown} has control characters"
            )));
        }
    }
    Ok(())
}

/// The headers with `${NAME}` in place of `$NAME` where the file allows this variable, as Claude Code has it.
pub(super) fn braced(
    headers: BTreeMap<String, String>,
    variables: &[String],
) -> BTreeMap<String, String> {
    let braced = |value: String| {
        let each = variables.iter().filter(|name| !name.is_empty());
        each.fold(value, |value, name| with_braces(&value, name))
    };
    headers
        .into_iter()
        .map(|(name, value)| (name, braced(value)))
        .collect()
}

/// The text with `${NAME}` in place of each `$NAME`.
fn with_braces(text: &str, name: &str) -> String {
    let (mut braced, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('$') {
        let behind = &rest[at + 1..];
        let is_name = behind.strip_prefix(name).is_some_and(|end| {
            !end.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
        });
        braced.push_str(&rest[..at]);
        rest = match is_name {
            true => {
                braced.push_str(&format!("${{{name}}}"));
                &behind[name.len()..]
            }
            false => {
                braced.push('$');
                behind
            }
        };
    }
    braced + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"hooks": {
        "PreToolUse": [{"hooks": [{"type": "command", "command": "x"},
            {"type": "http", "url": "https://a.example", "headers": {"X-Key": "s3cret", "X-Mine": "${MINE}"}}]}],
        "Stop": [{"hooks": [{"type": "http", "url": "https://b.example", "headers": {"X-Key": "s3cret too"}}]}]}}"#;

    #[test]
    fn the_values_of_headers_are_in_no_text_that_is_shown_and_each_is_known_for_its_hook() {
        let (shown, secrets) = split_hooks(FILE).expect("it is read");
        assert!(
            !shown.contains("s3cret") && shown.contains("${MINE}"),
            "{shown}"
        );
        assert!(!format!("{secrets:?}").contains("s3cret"));
        let value = |value: &str| BTreeMap::from([("X-Key".to_owned(), value.to_owned())]);
        let of = |in_file, url| secrets.clone().of(in_file, url);
        assert_eq!(of(Some(1), "https://a.example"), value("s3cret"));
        assert_eq!(of(Some(2), "https://b.example"), value("s3cret too"));
        assert!(of(Some(1), "https://b.example").is_empty());
        assert_eq!(of(None, "https://b.example"), value("s3cret too"));
        let one_address = FILE.replace("b.example", "a.example");
        let mut secrets = hidden_headers(&one_address).expect("it is read");
        assert!(
            secrets.of(None, "https://a.example").is_empty(),
            "which hook is meant is not known"
        );
    }

    #[test]
    fn a_text_that_was_shown_keeps_its_values_for_the_same_address_alone() {
        let (shown, before) = split_hooks(FILE).expect("it is read");
        let mut again = hidden_headers(&shown).expect("it is read");
        assert!(again.has_open());
        again.keep(&before).expect("they are known");
        assert_eq!(again, before);
        let elsewhere = shown.replace("a.example", "evil.example");
        let mut elsewhere = hidden_headers(&elsewhere).expect("it is read");
        assert!(elsewhere.keep(&before).is_err());
    }

    #[test]
    fn a_variable_that_the_file_allows_needs_no_braces() {
        let names = ["TOKEN".to_owned(), "T".to_owned()];
        let headers = BTreeMap::from([(
            "Authorization".to_owned(),
            "Bearer $TOKEN $TOKENS ${TOKEN} $T $X".to_owned(),
        )]);
        let headers = braced(headers, &names);
        assert_eq!(
            headers["Authorization"],
            "Bearer ${TOKEN} $TOKENS ${TOKEN} ${T} $X"
        );
    }

    #[test]
    fn a_hook_with_a_wrong_header_is_told_of_and_stays_and_no_text_shows_the_header() {
        let all = [
            ("http", ""),
            ("http", "a b"),
            ("http", "Host"),
            ("http", "Idempotency-Key"),
            ("command", "X-Key"),
            ("unknown", "X-Key"),
        ];
        for (kind, name) in all {
            let hook = serde_json::json!({"type": kind, "url": "https://a.example", "command": "x",
                "headers": {name: "s3cret"}});
            let file = serde_json::json!({"hooks": {"PermissionRequest": [{"hooks": [hook]}]}});
            let (written, unread) =
                written_hooks(file.as_object().expect("it is one").clone()).expect("it is read");
            assert_eq!(
                written.len(),
                usize::from(kind != "unknown"),
                "{kind} {name}"
            );
            assert_eq!(unread.len(), 1, "{kind} {name}: {unread:?}");
            let (shown, _) = split_hooks(&file.to_string()).expect("it is read");
            assert!(!shown.contains("s3cret"), "{kind} {name}: {shown}");
        }
    }
}
