//! A call as the model is sent it once its result is left out.

use crate::transcript::Call;

/// Results and arguments up to this length stay as they are: what stands in their place has about
/// half of it.
const STAYS_BYTES: usize = 128;

/// What stands in the place of long parts of a call; nothing where the part is short.
pub(super) struct Short {
    /// A JSON object, because vendors read arguments.
    pub(super) arguments: Option<String>,
    pub(super) result: Option<String>,
    saved: usize,
}

impl Short {
    pub(super) fn of(call: &Call) -> Self {
        let given = call.asked.arguments.as_str();
        let told = call.result.as_ref().map_or("", |result| &result.text);
        let arguments = short(given, |bytes| {
            format!(r#"{{"left_out":"{bytes} bytes of arguments, to make room"}}"#)
        });
        let result = short(told, |bytes| {
            format!("[left out: {bytes} bytes of output, to make room]")
        });
        let saved = |whole: &str, short: &Option<String>| match short {
            Some(short) => whole.len() - short.len(),
            None => 0,
        };
        Self {
            saved: saved(given, &arguments) + saved(told, &result),
            arguments,
            result,
        }
    }

    /// How many bytes shorter the call becomes.
    pub(super) fn saved(&self) -> usize {
        self.saved
    }
}

fn short(whole: &str, say: impl FnOnce(String) -> String) -> Option<String> {
    (whole.len() > STAYS_BYTES).then(|| say(grouped(whole.len())))
}

/// A number with a comma between each three digits: `12,345`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_grouped_by_thousands() {
        let all = [0, 999, 1_000, 12_345, 1_234_567].map(grouped);
        assert_eq!(all, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }
}
