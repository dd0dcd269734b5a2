//! JSON that clients send: the fields of an object come by their names.
//!
//! Serde also reads an object from a list of its fields in their order, at any depth. Such a list would change its
//! meaning once a field is added, and does not name its fields. So it is refused.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::words;

/// Reads a message, and refuses lists in place of objects.
///
/// # Errors
/// Fails with the mistake in the message, in words.
pub(crate) fn read_by_name<T: DeserializeOwned + Serialize>(text: &str) -> Result<T, String> {
    let read = serde_json::from_str(text);
    let read = read.and_then(|read| by_name(text.as_bytes(), &read).map(|()| read));
    read.map_err(|wrong| words::of_message(&wrong))
}

/// Refuses a list that was read as an object. It compares the text with the value that was read, written again.
///
/// # Errors
/// Fails with the place of the list.
pub(crate) fn by_name(sent: &[u8], read: &impl Serialize) -> Result<(), serde_json::Error> {
    let (sent, read) = (serde_json::from_slice(sent)?, serde_json::to_value(read)?);
    match list_for_object(&sent, &read) {
        None => Ok(()),
        Some(place) if place.is_empty() => Err(wrong("the message is a list")),
        Some(place) => Err(wrong(&format!(
            "{} is a list",
            place.trim_start_matches('.')
        ))),
    }
}

fn wrong(fact: &str) -> serde_json::Error {
    let words = format!("{fact}, and has to be an object with its fields by name");
    serde::de::Error::custom(words)
}

fn list_for_object(sent: &Value, read: &Value) -> Option<String> {
    match (sent, read) {
        (Value::Array(_), Value::Object(_)) => Some(String::new()),
        (Value::Array(sent), Value::Array(read)) => {
            let mut items = sent.iter().zip(read).enumerate();
            items.find_map(|(place, (sent, read))| {
                list_for_object(sent, read).map(|deeper| format!("[{place}]{deeper}"))
            })
        }
        (Value::Object(sent), Value::Object(read)) => sent.iter().find_map(|(name, sent)| {
            let deeper = list_for_object(sent, read.get(name)?)?;
            Some(format!(".{name}{deeper}"))
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use shared_api::{
        ChangeSettings, ClientMessage, OperationClientMessage, SignIn, StartOperation,
    };

    use super::*;

    fn refusal<T: DeserializeOwned + Serialize>(text: &str) -> String {
        // serde itself has to accept it, because the test would show nothing otherwise.
        serde_json::from_str::<T>(text).map(drop).expect(text);
        let read = read_by_name::<T>(text).map(drop);
        read.expect_err(text).to_string()
    }

    #[test]
    fn a_list_is_no_object_at_any_depth() {
        let values = r#"{"layer":"user","values":[null,null]}"#;
        assert_eq!(
            refusal::<ChangeSettings>(values),
            "values is a list, and has to be an object with its fields by name"
        );
        refusal::<ChangeSettings>(r#"{"layer":"user","values":[]}"#);
        refusal::<SignIn>(r#"["code","device"]"#);
        refusal::<OperationClientMessage>(r#"["resize",24,80]"#);
        refusal::<ClientMessage>(r#"["watch",["sessions"]]"#);
        refusal::<StartOperation>(r#"{"exec":[["ls"]]}"#);
        let sizes = r#"{"exec":{"argv":["sh"],"terminal":[24,80]}}"#;
        assert!(refusal::<StartOperation>(sizes).starts_with("exec.terminal is a list"));
    }

    #[test]
    fn what_comes_by_name_is_read_with_its_lists() {
        let read = |text| read_by_name::<StartOperation>(text).map(drop);
        read(r#"{"exec":{"argv":["ls","-l"],"environment":{"A":"b"}}}"#).expect("it is good");
        read(r#"{"pack":{"path":"","entries":["a","b"]}}"#).expect("it is good");
        let said = read_by_name::<OperationClientMessage>(r#"{"type":"input_end","offset":3}"#);
        said.map(drop).expect("it is good");
        let asked = r#"{"type":"subscribe","session":"ses_00000000000000000000000000","after":0}"#;
        read_by_name::<ClientMessage>(asked)
            .map(drop)
            .expect("it is good");
        let watched = r#"{"type":"watch","topics":["sessions","join_tokens"]}"#;
        read_by_name::<ClientMessage>(watched)
            .map(drop)
            .expect("it is good");
    }
}
