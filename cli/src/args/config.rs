//! The commands that manage settings.

use clap::{Args as Arguments, Subcommand};
use shared_api::SettingName;

use crate::pick::SessionName;

#[derive(Debug, Default, Arguments)]
pub(crate) struct ListConfig {
    /// Show the settings of this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<SessionName>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Set values, for you unless an option says otherwise; they count from the next message
    Set {
        /// NAME VALUE, or NAME=VALUE one or more times; all values are set, or none
        #[arg(required = true, value_name = "NAME=VALUE")]
        values: Vec<String>,
        #[command(flatten)]
        layer: Layer,
    },
    /// Remove values, so that those of a wider layer count
    Unset {
        /// The settings: runner, model, language, steps; with --tenant also isolation and sudo
        #[arg(required = true, value_name = "NAME", value_parser = setting)]
        names: Vec<SettingName>,
        #[command(flatten)]
        layer: Layer,
    },
}

/// The layer to change; without an option, the person's own.
#[derive(Debug, Arguments)]
pub(crate) struct Layer {
    /// For everyone who has set nothing else (admins)
    #[arg(long, conflicts_with = "session")]
    pub(crate) tenant: bool,
    /// For this session: an id, the beginning of one, or `last`
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<SessionName>,
}

fn setting(text: &str) -> Result<SettingName, String> {
    let named = SettingName::ALL
        .into_iter()
        .find(|name| name.word() == text);
    named.ok_or_else(|| {
        format!(
            "choose among {}",
            SettingName::ALL.map(SettingName::word).join(", ")
        )
    })
}

/// The values that are to be set, as they were typed: `steps 80`, or `steps=80 language=German`.
pub(crate) fn values(words: &[String]) -> Result<Vec<(SettingName, String)>, String> {
    if let [name, value] = words
        && !name.contains('=')
    {
        return Ok(vec![(setting(name)?, value.clone())]);
    }
    let each = words.iter().map(|word| match word.split_once('=') {
        Some((name, value)) => Ok((setting(name)?, value.to_owned())),
        None => Err(format!(
            "write {word:?} as NAME=VALUE, or one NAME VALUE alone; put a value with spaces in quotes"
        )),
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_typed_as_one_pair_or_as_several_assignments() {
        let typed = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            values(&words)
        };
        let steps = (SettingName::Steps, "80".to_owned());
        let model = (SettingName::Model, "a=b".to_owned());
        assert_eq!(typed(&["steps", "80"]), Ok(vec![steps.clone()]));
        assert_eq!(typed(&["steps=80", "model=a=b"]), Ok(vec![steps, model]));
        for (wrong, words) in [
            (
                &["colour", "blue"][..],
                "choose among runner, model, language, steps, mode",
            ),
            (&["steps"], "NAME=VALUE"),
            (&["language", "Swiss", "German"], "in quotes"),
        ] {
            let refused = typed(wrong).expect_err("it is refused");
            assert!(refused.contains(words), "{refused}");
        }
    }
}
