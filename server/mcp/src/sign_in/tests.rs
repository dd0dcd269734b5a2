use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};

use super::*;

fn refused(written: &[&'static str]) -> Challenge {
    let mut headers = HeaderMap::new();
    for value in written {
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(value));
    }
    Challenge::of(401, &headers)
}

#[test]
fn a_refusal_is_read_as_servers_write_it() {
    let full = refused(&[
        r#"Basic realm="a, b", Bearer resource_metadata="https://a/x?y=1", scope="read write""#,
    ]);
    assert_eq!(full.resource_metadata.as_deref(), Some("https://a/x?y=1"));
    assert_eq!(full.scope.as_deref(), Some("read write"));
    let bare = refused(&["bearer error=invalid_token , error_description = \"it \\\"ended\\\"\""]);
    assert_eq!(bare.error.as_deref(), Some("invalid_token"));
    assert_eq!(bare.told().as_deref(), Some(r#"it "ended""#));
    let other = refused(&[r#"Basic scope="x""#, "Bearer", r#"Bearer scope="y""#]);
    assert_eq!(other.scope.as_deref(), Some("y"));
    for broken in [
        "",
        "=",
        ",,",
        "Bearer =\"",
        "Bearer scope=",
        "Bearer scope=\"x\\",
    ] {
        refused(&[broken]);
    }
}

#[test]
fn words_that_are_no_scopes_are_left_out() {
    let scopes = scopes_of("read  write \"x\" caf\u{e9} read");
    assert_eq!(joined(&scopes), "read write");
}
