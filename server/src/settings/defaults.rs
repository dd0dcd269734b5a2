//! `[defaults]`: the values that count where no tenant, user or session has set any.

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Deserialize;
use server_app::OperatorSettings;

/// The section of the file. The model is `name` under `[model]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DefaultsSection {
    /// The language of the answers [default: the model chooses].
    #[schemars(example = &"German")]
    language: Option<String>,
    /// The most model calls in a turn, 1 to 500 [default: 50].
    steps: Option<u32>,
}

impl DefaultsSection {
    /// The values, checked like those of people.
    ///
    /// # Errors
    /// Fails if one is not allowed.
    pub(super) fn settings(&self) -> anyhow::Result<OperatorSettings> {
        OperatorSettings::new(self.language.as_deref(), self.steps)
            .context("[defaults] in gantry.toml")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_bounded_like_what_people_set() {
        let settings = |text: &str| {
            let section: DefaultsSection = toml::from_str(text).expect("a section");
            section.settings()
        };
        let set = settings("language = \"German\"\nsteps = 80").expect("they are fine");
        let same = OperatorSettings::new(Some("German"), Some(80)).expect("they are fine");
        assert_eq!(set, same);
        for (wrong, allowed) in [
            ("steps = 0", "1 to 500"),
            ("steps = 501", "1 to 500"),
            ("language = \"\"", "at most 40"),
            ("language = \"a\\nb\"", "on one line"),
        ] {
            let error = format!("{:#}", settings(wrong).expect_err("it is refused"));
            assert!(
                error.starts_with("[defaults]") && error.contains(allowed),
                "{error}"
            );
        }
    }
}
