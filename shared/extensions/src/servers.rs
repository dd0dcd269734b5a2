//! Tool servers: `.mcp.json` of Claude Code (<https://code.claude.com/docs/en/mcp>).
//!
//! ```json
//! {"mcpServers": {"files": {"command": "npx", "args": ["-y", "…"], "env": {"ROOT": "."}}, "far": {"type": "http", "url": "https://…"}}}
//! ```
//!
//! The values of variables and headers, and the secret of a client, may be secrets. So a server that is read has none of
//! them ([`shared_types::event::ShownValue`]); [`secrets_of`] reads them alone, and [`split`] takes them out of a file.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared_types::event::{Provenance, ShownValue, ToolServer, ToolServerTransport};

use crate::{Invalid, another_form, cleaned, is_name};

/// Most servers of a file.
pub const MAX_SERVERS: usize = 32;

/// Longest name, in bytes.
const MAX_NAME: usize = 32;

/// Most arguments, variables or headers of a server.
const MAX_PARTS: usize = 64;

/// Most bytes of all of them.
const MAX_BYTES: usize = 16 * 1024;

/// The longest time in which a server has to be ready, in seconds.
const MAX_STARTUP_S: u16 = 600;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    mcp_servers: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct Words {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    oauth: Option<OauthWords>,
    /// In seconds.
    #[serde(rename = "startup_timeout", alias = "startupTimeout")]
    startup_timeout: Option<u16>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OauthWords {
    client_id: Option<String>,
    client_secret: Option<String>,
    issuer: Option<String>,
}

/// The hidden values of a server.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerSecrets {
    /// Variables of its environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The secret of the client as which people sign in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
}

impl ServerSecrets {
    /// True if there are none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Takes what this one leaves open (`(hidden)`) from the one in whose place it comes.
    ///
    /// # Errors
    /// The one before has no such value.
    pub fn keep(&mut self, before: &Self) -> Result<(), Invalid> {
        let maps = [
            (&mut self.env, &before.env),
            (&mut self.headers, &before.headers),
        ];
        for (now, before) in maps {
            for (name, value) in now.iter_mut().filter(|(_, value)| is_open(value)) {
                let known = before.get(name);
                *value = known.cloned().ok_or_else(|| missing(name))?;
            }
        }
        if self.client_secret.as_deref().is_some_and(is_open) {
            let known = before.client_secret.clone();
            self.client_secret = Some(known.ok_or_else(|| missing("clientSecret"))?);
        }
        Ok(())
    }

    /// True if a value is left open.
    pub fn has_open(&self) -> bool {
        let mut values = self
            .env
            .values()
            .chain(self.headers.values())
            .chain(&self.client_secret);
        values.any(|value| is_open(value))
    }
}

fn is_open(value: &str) -> bool {
    value == ShownValue::HIDDEN
}

fn missing(name: &str) -> Invalid {
    Invalid::new(format!(
        "no value of {} is stored: write it",
        cleaned(name, 64)
    ))
}

impl fmt::Debug for ServerSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerSecrets")
    }
}

/// The hidden values of a server in a file.
///
/// # Errors
/// The text has another form, or has no such server.
pub fn secrets_of(text: &str, name: &str) -> Result<ServerSecrets, Invalid> {
    let file: Value = serde_json::from_str(text)
        .map_err(|error| Invalid::new(format!("it is no JSON: {error}")))?;
    let written = file.get("mcpServers").and_then(|servers| servers.get(name));
    // A list would be read as the fields in their order.
    let is_object = |value: &Value| value.is_object();
    let written = written.filter(|written| is_object(written));
    let written = written.filter(|written| written.get("oauth").is_none_or(is_object));
    let words: Words = serde_json::from_value(written.cloned().unwrap_or_default())
        .map_err(|error| another_form(&error))?;
    Ok(words.secrets())
}

/// Parts a file with one server into a text that may be shown and the values that may not.
///
/// # Errors
/// The text has another form, or has no such server.
pub fn split(text: &str, name: &str) -> Result<(String, ServerSecrets), Invalid> {
    let secrets = secrets_of(text, name)?;
    let mut file: Value = serde_json::from_str(text)
        .map_err(|error| Invalid::new(format!("it is no JSON: {error}")))?;
    let server = &mut file["mcpServers"][name];
    for (part, hidden) in [("env", &secrets.env), ("headers", &secrets.headers)] {
        for name in hidden.keys() {
            server[part][name] = ShownValue::HIDDEN.into();
        }
    }
    if secrets.client_secret.is_some() {
        server["oauth"]["clientSecret"] = ShownValue::HIDDEN.into();
    }
    Ok((file.to_string(), secrets))
}

impl Words {
    fn secrets(self) -> ServerSecrets {
        let hidden = |values: BTreeMap<String, String>| {
            let is_hidden = |value: &String| ShownValue::from(value.clone()) == ShownValue::Hidden;
            values
                .into_iter()
                .filter(|(_, value)| is_hidden(value))
                .collect()
        };
        ServerSecrets {
            env: hidden(self.env),
            headers: hidden(self.headers),
            client_secret: self.oauth.and_then(|oauth| oauth.client_secret),
        }
    }
}

fn shown(values: BTreeMap<String, String>) -> BTreeMap<String, ShownValue> {
    let shown = values
        .into_iter()
        .map(|(name, value)| (name, ShownValue::from(value)));
    shown.collect()
}

/// Reads the servers of a file, by their names. Beside them it returns words on those that are not used.
///
/// # Errors
/// The text has another form, or more than 32 servers.
pub fn read_servers(
    text: &str,
    from: &Provenance,
) -> Result<(Vec<ToolServer>, Vec<String>), Invalid> {
    // A list would be read as the fields in their order.
    let file: serde_json::Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| Invalid::new(format!("it is no JSON object: {error}")))?;
    let file: File = serde_json::from_value(file.into()).map_err(|error| another_form(&error))?;
    if file.mcp_servers.len() > MAX_SERVERS {
        return Err(Invalid::new(format!(
            "it has more than {MAX_SERVERS} servers"
        )));
    }
    let (mut servers, mut unread) = (Vec::new(), Vec::new());
    for (name, written) in file.mcp_servers {
        match server(&name, written) {
            Ok((transport, startup_timeout_s)) => servers.push(ToolServer {
                name,
                transport,
                startup_timeout_s,
                from: from.clone(),
            }),
            Err(Invalid(why)) => {
                unread.push(format!("tool server {:?}: {why}", cleaned(&name, MAX_NAME)))
            }
        }
    }
    Ok((servers, unread))
}

fn server(name: &str, written: Value) -> Result<(ToolServerTransport, Option<u16>), Invalid> {
    // The names of its tools are `mcp__NAME__TOOL`, and each rule must mean one server.
    let is_ambiguous = name.contains("__") || name.starts_with('_') || name.ends_with('_');
    if !is_name(name, "-_", MAX_NAME) || is_ambiguous {
        return Err(Invalid::new(
            "its name may have letters, digits, '-' and single '_' between them, at most 32",
        ));
    }
    let words: Words = serde_json::from_value(written).map_err(|error| another_form(&error))?;
    let pairs = words.env.iter().chain(&words.headers);
    let bytes = pairs
        .map(|(name, value)| name.len() + value.len())
        .sum::<usize>()
        + words.args.iter().map(String::len).sum::<usize>();
    let parts = [words.args.len(), words.env.len(), words.headers.len()];
    if bytes > MAX_BYTES || parts.iter().any(|parts| *parts > MAX_PARTS) {
        return Err(Invalid::new(
            "it has too many arguments, variables or headers",
        ));
    }
    let is_variable = |name: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(is_letter)
    };
    if let Some(name) = words.env.keys().find(|name| !is_variable(name)) {
        return Err(Invalid::new(format!(
            "{:?} is no name of a variable",
            cleaned(name, 64)
        )));
    }
    let startup = words.startup_timeout;
    if startup.is_some_and(|seconds| !(1..=MAX_STARTUP_S).contains(&seconds)) {
        return Err(Invalid::new(format!(
            "its startup_timeout is no number of seconds from 1 to {MAX_STARTUP_S}"
        )));
    }
    let transport = match (words.kind.as_deref(), words.command, words.url) {
        (None | Some("stdio"), Some(command), None) if !command.trim().is_empty() => {
            Ok(ToolServerTransport::Stdio {
                command,
                args: words.args,
                env: shown(words.env),
            })
        }
        (None | Some("http" | "streamable-http"), None, Some(url)) if url.len() <= 2048 => {
            let (client_id, issuer) = match words.oauth {
                Some(oauth) => (oauth.client_id, oauth.issuer),
                None => (None, None),
            };
            if let Some(issuer) = &issuer {
                check_issuer(issuer, &url)?;
            }
            Ok(ToolServerTransport::Http {
                url,
                headers: shown(words.headers),
                client_id: client_id.filter(|id| !id.is_empty() && id.len() <= 2048),
                issuer,
            })
        }
        (Some("sse"), ..) => Err(Invalid::new(
            "its type is sse, which no server needs any more: use http",
        )),
        _ => Err(Invalid::new(
            "it has neither a command nor a url of a type that is known",
        )),
    };
    Ok((transport?, startup))
}

/// Checks an issuer as RFC 8414 has it (section 2): a URL of https without query and fragment. For a server without TLS
/// it may be one of http.
fn check_issuer(issuer: &str, url: &str) -> Result<(), Invalid> {
    let secured = issuer.strip_prefix("https://");
    let host = match url.starts_with("http://") {
        true => secured.or_else(|| issuer.strip_prefix("http://")),
        false => secured,
    };
    let has_host = host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'));
    let is_letter = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'@');
    match has_host && issuer.len() <= 2048 && issuer.bytes().all(is_letter) {
        true => Ok(()),
        false => Err(Invalid::new(
            "its issuer is no address of https without ? and #, such as https://login.example.org",
        )),
    }
}

#[cfg(test)]
mod tests {
    use shared_types::{Digest, event::Layer};

    use super::*;

    fn read(text: &str) -> Result<(Vec<ToolServer>, Vec<String>), Invalid> {
        let from = Provenance {
            layer: Layer::Project,
            at: ".mcp.json".to_owned(),
            digest: Digest::of(text.as_bytes()),
            trusted: false,
        };
        read_servers(text, &from)
    }

    #[test]
    fn both_ways_to_a_server_are_read() {
        let (servers, unread) = read(
            r#"{"mcpServers": {"files": {"command": "npx", "args": ["-y", "x"], "env": {"ROOT": "${HOME}"}},
                "far": {"type": "http", "url": "https://example.org/mcp"}}}"#,
        )
        .unwrap();
        let names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!((names, unread), (vec!["far", "files"], Vec::new()));
    }

    #[test]
    fn a_server_that_cannot_be_used_is_named_and_the_others_count() {
        let (servers, unread) = read(
            r#"{"mcpServers": {"a__b": {"command": "x"}, "a_": {"command": "x"}, "old": {"type": "sse", "url": "https://x"}, "none": {},
                "bad": {"command": "x", "env": {"A=B": "c"}}, "both": {"command": "x", "url": "y"}, "slow": {"command": "x", "startup_timeout": 601},
                "ok": {"command": "x", "startup_timeout": 120}}}"#,
        )
        .unwrap();
        assert_eq!((servers.len(), unread.len()), (1, 7));
        assert_eq!(servers[0].startup_timeout_s, Some(120));
        assert!(read("1").is_err());
    }

    #[test]
    fn words_on_another_form_have_no_value() {
        for part in [
            r#""env": {"KEY": 4242}"#,
            r#""env": "4242""#,
            r#""oauth": {"clientSecret": 4242}"#,
        ] {
            let text = format!(r#"{{"mcpServers": {{"a": {{"command": "x", {part}}}}}}}"#);
            let (_, unread) = read(&text).unwrap();
            assert!(
                unread[0].contains("expected a ") && !unread[0].contains("4242"),
                "{unread:?}"
            );
        }
    }

    #[test]
    fn an_issuer_is_an_address_of_https() {
        for (url, issuer, is_read) in [
            ("https://a.example/mcp", "https://b.example/x", true),
            ("https://a.example/mcp", "http://b.example", false),
            ("http://127.0.0.1/mcp", "http://127.0.0.1:8", true),
            ("https://a.example/mcp", "https://b.example?x", false),
            ("https://a.example/mcp", "https://", false),
            ("https://a.example/mcp", "b.example", false),
        ] {
            let text = format!(
                r#"{{"mcpServers": {{"a": {{"url": "{url}", "oauth": {{"issuer": "{issuer}"}}}}}}}}"#
            );
            let (servers, _) = read(&text).unwrap();
            assert_eq!(servers.len(), usize::from(is_read), "{issuer}");
        }
    }

    #[test]
    fn values_are_in_no_server_that_is_read_and_in_no_text_that_is_shown() {
        let text = r#"{"mcpServers": {"a": {"command": "x", "env": {"ROOT": "${HOME}", "KEY": "s3cret"}, "oauth": {"clientSecret": "s3cret"}}}}"#;
        let (servers, _) = read(text).unwrap();
        assert!(!format!("{servers:?}").contains("s3cret"));
        let (shown, secrets) = split(text, "a").unwrap();
        assert!(
            !shown.contains("s3cret") && shown.contains("${HOME}"),
            "{shown}"
        );
        assert_eq!(secrets.env.keys().collect::<Vec<_>>(), ["KEY"]);
        // The text that is shown can be written again, and keeps the values.
        let mut again = secrets_of(&shown, "a").unwrap();
        assert!(again.has_open());
        again.keep(&secrets).unwrap();
        assert_eq!(again, secrets);
        assert!(
            secrets_of(&shown, "a")
                .unwrap()
                .keep(&ServerSecrets::default())
                .is_err()
        );
    }
}
