//! Tests of `extensions.rs`.

use super::*;

#[test]
fn a_tool_server_that_cannot_be_registered_is_refused_with_the_rule_that_it_breaks() {
    let refused = |name: &str, text: &str| {
        check(&NewRegistered {
            kind: ExtensionKind::Mcp,
            name: name.to_owned(),
            text: text.to_owned(),
            packed: Bytes::new(),
            source: String::new(),
            for_everyone: false,
            replaces: None,
        })
        .expect_err(text)
    };
    for (name, text, says) in [
        (
            "a name",
            r#"{"mcpServers": {"a name": {"command": "x"}}}"#,
            "its name may have letters, digits",
        ),
        (
            "a",
            r#"{"mcpServers": {"a": {"type": "sse", "url": "https://example.org/"}}}"#,
            "sse",
        ),
        (
            "a",
            r#"{"mcpServers": {"b": {"command": "x"}}}"#,
            "it must have one server, of this name",
        ),
    ] {
        let why = refused(name, text);
        assert!(why.contains(says), "{why}");
    }
}
