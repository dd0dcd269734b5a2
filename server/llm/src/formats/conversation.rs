//! Rules of conversations that hold for every wire format.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Map, Value, json};

/// Longest name of a tool, in letters.
const MAX_NAME: usize = 64;

/// The text in place of an answer, where a message of the user follows a result: the turn ended without an answer, or
/// the message joined the turn while it worked.
pub(crate) const NO_ANSWER: &str = "(No answer was given here.)";

/// The ids of calls as they are sent: each stands for one call of the whole conversation, also
/// where the vendor used it again. Without an id, one that every vendor takes.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    sent: BTreeSet<String>,
    /// Those without a result yet: the vendor's, and ours for it.
    open: VecDeque<(String, String)>,
}

impl Ids {
    /// The id under which a call with this id of the vendor's is sent.
    pub(crate) fn of_call(&mut self, id: &str) -> String {
        let mut all = std::iter::once(id.to_owned()).chain((0..).map(id_of_ours));
        let is_free = |id: &String| !id.is_empty() && !self.sent.contains(id);
        let sent = all.find(is_free).expect("there is always another number");
        self.sent.insert(sent.clone());
        self.open.push_back((id.to_owned(), sent.clone()));
        sent
    }

    /// The id of the call to which a result belongs. Results of calls with the same id stand in the order of the
    /// calls.
    pub(crate) fn of_result(&mut self, id: &str) -> String {
        let place = self.open.iter().position(|(vendors, _)| vendors == id);
        let open = place.and_then(|place| self.open.remove(place));
        open.map_or_else(|| id.to_owned(), |(_, sent)| sent)
    }
}

/// An id for a call without one. It has nine letters and digits, as Mistral asks for. Other vendors bound the
/// length and the letters.
pub(crate) fn id_of_ours(number: usize) -> String {
    format!("call{number:05}")
}

/// The name of a tool as vendors take it: letters, digits, `_` and `-`, at most 64. A model may write a name that no
/// tool can have, and the vendor would refuse the whole conversation with it.
pub(crate) fn tool_name(written: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let letters = written.chars().take(MAX_NAME);
    let name: String = letters
        .map(|letter| if allowed(letter) { letter } else { '_' })
        .collect();
    match name.is_empty() {
        true => "unknown".to_owned(),
        false => name,
    }
}

/// The arguments of an earlier call, as an object. Many servers parse them, and refuse the whole conversation for ever
/// where they are not one. So what the model wrote wrongly is shown to it inside of one.
pub(crate) fn arguments(written: &str) -> Map<String, Value> {
    if written.trim().is_empty() {
        return Map::new();
    }
    serde_json::from_str(written).unwrap_or_else(|_| {
        let wrapped = json!({ "invalid_arguments": written });
        wrapped.as_object().cloned().unwrap_or_default()
    })
}

/// The arguments of an earlier call as the text of an object. What the model wrote goes back unchanged where it is one.
pub(crate) fn arguments_text(written: &str) -> String {
    match serde_json::from_str::<Map<String, Value>>(written) {
        Ok(_) => written.to_owned(),
        Err(_) => Value::Object(arguments(written)).to_string(),
    }
}

/// The name of a tool without what models write around it: `functions.Shell`, `Shell:0`.
pub(crate) fn bare_name(name: &str) -> &str {
    let bare = name.trim().rsplit(['.', '/']).next().unwrap_or_default();
    bare.split(':').next().unwrap_or_default()
}

/// The tool that a name can only mean: models write `functions.Shell`, `shell` or `Shell:0`.
pub(crate) fn meant(tools: &[String], name: String) -> String {
    if tools.contains(&name) {
        return name;
    }
    let bare = bare_name(&name);
    let mut alike = tools.iter().filter(|tool| tool.eq_ignore_ascii_case(bare));
    match (alike.next(), alike.next()) {
        (Some(tool), None) => tool.clone(),
        _ => name,
    }
}
