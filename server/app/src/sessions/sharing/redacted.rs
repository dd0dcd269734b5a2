//! Events as a stranger reads them: each text in them is redacted, also in fields and kinds that this version does
//! not know.

use serde_json::Value;
use server_guard::leaks;
use shared_types::SessionEvent;

/// The event without secrets of a known form.
///
/// # Errors
/// If the event is no event any more without them.
pub(super) fn event(event: &SessionEvent) -> Result<SessionEvent, serde_json::Error> {
    let mut fields = serde_json::to_value(event)?;
    redact(&mut fields);
    serde_json::from_value(fields)
}

/// Redacts each text in the value. The depth is that of an event that was read, which the JSON library bounds.
fn redact(value: &mut Value) {
    match value {
        Value::String(text) => *text = leaks::redact(text).into_owned(),
        Value::Array(values) => values.iter_mut().for_each(redact),
        Value::Object(fields) => fields.values_mut().for_each(redact),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_go_from_each_text_and_the_rest_stays() {
        let secret = format!("ghp_{}", "q7Rk2ZpX9vLm4TnB8sWd3YhJ6cFgA1uEoKi5");
        let stored = json!({
            "seq": 3, "at": "2026-11-29T12:00:00Z", "type": "of.a.newer.version", "v": 1,
            "parts": [{"type": "text", "text": format!("use {secret} now")}],
            "arguments": format!("{{\"command\":\"echo {secret}\"}}"),
        });
        let stored: SessionEvent = serde_json::from_value(stored).expect("it is an event");
        let shown = event(&stored).expect("it stays an event");
        let shown = serde_json::to_string(&shown).expect("it is written");
        assert!(!shown.contains(&secret), "{shown}");
        assert_eq!(
            shown.matches("ghp_… [GitHub token redacted]").count(),
            2,
            "{shown}"
        );
        assert_eq!(
            (shown.contains("use "), shown.contains("\"seq\":3")),
            (true, true)
        );
    }
}
