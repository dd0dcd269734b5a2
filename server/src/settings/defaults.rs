//! `[defaults]`: the values that count where no tenant, user or session has set any.

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Deserialize;
use server_app::OperatorSettings;
use shared_types::Mode;

/// The section of the file. The model is `name` under `[model]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DefaultsSection {
    /// The language of the answers [default: the model chooses].
    #[schemars(example = &"German")]
    language: Option<String>,
    /// The most model calls in a turn, 1 to 500 [default: 50].
    steps: Option<u32>,
    /// The mode of agents: plan, ask, auto or full [default: ask where nothing keeps commands apart, else auto].
    #[schemars(with = "Option<String>", example = &"ask")]
    mode: Option<Mode>,
    /// The most freedom of agents, as a mode [default: full].
    #[schemars(with = "Option<String>", example = &"auto")]
    max_mode: Option<Mode>,
}

impl DefaultsSection {
    /// The values, checked like those of people. A mode on the command line goes before the one of the file.
    ///
    /// # Errors
    /// Fails if one is not allowed.
    pub(super) fn settings(&self, mode: Option<Mode>) -> anyhow::Result<OperatorSettings> {
        let settings = OperatorSettings::new(self.language.as_deref(), self.steps)
            .context("[defaults] in gantry.toml")?;
        Ok(settings.in_mode(mode.or(self.mode), self.max_mode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_bounded_like_what_people_set() {
        let settings = |text: &str| {
            let section: DefaultsSection = toml::from_str(text).expect("a section");
            section.settings(None)
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
