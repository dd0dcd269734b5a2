//! Tool servers: `.mcp.json` of Claude Code (<https://code.claude.com/docs/en/mcp>).
//!
//! ```json
//! {"mcpServers": {"files": {"command": "npx", "args": ["-y", "…"], "env": {"ROOT": "."}}, "far": {"type": "http", "url": "https://…"}}}
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use shared_types::event::{Provenance, ToolServer, ToolServerTransport};

use crate::{Invalid, cleaned, is_name};

/// Most servers of a file.
pub const MAX_SERVERS: usize = 32;

/// Longest name, in bytes.
const MAX_NAME: usize = 32;

/// Most arguments, variables or headers of a server.
const MAX_PARTS: usize = 64;

/// Most bytes of all of them.
const MAX_BYTES: usize = 16 * 1024;

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
    let file: File = serde_json::from_value(file.into())
        .map_err(|error| Invalid::new(format!("it has another form: {error}")))?;
    if file.mcp_servers.len() > MAX_SERVERS {
        return Err(Invalid::new(format!(
            "it has more than {MAX_SERVERS} servers"
        )));
    }
    let (mut servers, mut unread) = (Vec::new(), Vec::new());
    for (name, written) in file.mcp_servers {
        match server(&name, written) {
            Ok(transport) => servers.push(ToolServer {
                name,
                transport,
                from: from.clone(),
            }),
            Err(Invalid(why)) => {
                unread.push(format!("tool server {:?}: {why}", cleaned(&name, MAX_NAME)))
            }
        }
    }
    Ok((servers, unread))
}

fn server(name: &str, written: Value) -> Result<ToolServerTransport, Invalid> {
    // The names of its tools are `mcp__NAME__TOOL`, and each rule must mean one server.
    let is_ambiguous = name.contains("__") || name.starts_with('_') || name.ends_with('_');
    if !is_name(name, "-_", MAX_NAME) || is_ambiguous {
        return Err(Invalid::new(
            "its name may have letters, digits, '-' and single '_' between them, at most 32",
        ));
    }
    let words: Words = serde_json::from_value(written)
        .map_err(|error| Invalid::new(format!("it has another form: {error}")))?;
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
    match (words.kind.as_deref(), words.command, words.url) {
        (None | Some("stdio"), Some(command), None) if !command.trim().is_empty() => {
            Ok(ToolServerTransport::Stdio {
                command,
                args: words.args,
                env: words.env,
            })
        }
        (None | Some("http" | "streamable-http"), None, Some(url)) if url.len() <= 2048 => {
            Ok(ToolServerTransport::Http {
                url,
                headers: words.headers,
            })
        }
        (Some("sse"), ..) => Err(Invalid::new(
            "its type is sse, which no server needs any more: use http",
        )),
        _ => Err(Invalid::new(
            "it has neither a command nor a url of a type that is known",
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
                "bad": {"command": "x", "env": {"A=B": "c"}}, "both": {"command": "x", "url": "y"}, "ok": {"command": "x"}}}"#,
        )
        .unwrap();
        assert_eq!((servers.len(), unread.len()), (1, 6));
        assert!(read("1").is_err());
    }
}
