//! The names of accounts and models, and how a person writes a choice among them.

use server_store::MAX_MODEL_NAME_BYTES;
use shared_types::clean::is_clean_line;

use crate::AppError;

/// Longest name of an account, in bytes.
const MAX_ACCOUNT_NAME_BYTES: usize = 64;

/// The name of the choice that leaves it to the server.
pub(super) const AUTO: &str = "auto";

/// Checks the name of an account: letters, digits, `.`, `_` and `-`, so that it can stand before a `/`.
///
/// # Errors
/// If it is none; the text says what is allowed.
pub fn account(name: &str) -> Result<(), AppError> {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let is_reserved = [super::OPERATOR, AUTO].contains(&name);
    match (1..=MAX_ACCOUNT_NAME_BYTES).contains(&name.len())
        && name.chars().all(is_allowed)
        && !is_reserved
    {
        true => Ok(()),
        false => Err(AppError::Invalid(format!(
            "the name of an account has 1 to {MAX_ACCOUNT_NAME_BYTES} letters, digits, dots, underscores and \
             dashes, and is neither operator nor auto"
        ))),
    }
}

/// Checks the name of a model.
pub(super) fn model(name: &str) -> Result<(), AppError> {
    let is_name = (1..=MAX_MODEL_NAME_BYTES).contains(&name.len())
        && is_clean_line(name)
        && !name.contains(',');
    match is_name {
        true => Ok(()),
        false => Err(AppError::Invalid(format!(
            "the name of a model has 1 to {MAX_MODEL_NAME_BYTES} bytes on one line, without commas"
        ))),
    }
}

/// The models of a choice, in the order in which they are asked: `claude-sonnet-5-5, gpt-6`.
pub(super) fn choices(value: &str) -> impl Iterator<Item = &str> {
    value
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_a_name_that_can_stand_before_a_slash_and_is_no_word_of_ours() {
        for good in ["anthropic", "work-2", "my.gateway_x"] {
            account(good).expect(good);
        }
        for bad in [
            "",
            "a/b",
            "two words",
            "operator",
            "auto",
            "ü",
            &"a".repeat(65),
        ] {
            account(bad).expect_err(bad);
        }
    }

    #[test]
    fn a_choice_names_models_in_their_order() {
        let named: Vec<_> = choices(" claude-sonnet-5-5,, work/gpt-6 ,balance").collect();
        assert_eq!(named, ["claude-sonnet-5-5", "work/gpt-6", "balance"]);
        assert_eq!(choices(" , ").count(), 0);
    }

    #[test]
    fn the_name_of_a_model_has_no_comma_because_commas_separate_names() {
        model("openai/gpt-oss-120b:free").expect("it is a name");
        for bad in ["", "a,b", "a\nb"] {
            model(bad).expect_err(bad);
        }
    }
}
