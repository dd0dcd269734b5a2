//! `[isolation]`: the isolation that a sandbox needs before work goes there, and the runners whose report counts.

use anyhow::{Context as _, anyhow};
use schemars::JsonSchema;
use serde::Deserialize;
use server_app::IsolationPolicy;
use shared_types::{Isolation, RunnerId};

/// The section of the file; without it nothing is demanded and no runner is believed.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct IsolationSection {
    /// The properties that a sandbox must keep apart before work goes there, with `+` between them [default: none].
    #[schemars(example = &"network+file_writes")]
    at_least: Option<String>,
    /// Ids of the runners whose report of their isolation counts; `gantry runners --json` shows ids [default: none].
    #[schemars(example = ["run_01m80768znevqt5s534gb06kwv"])]
    believed: Vec<String>,
    /// Permission for commands to be root in their sandbox, if its template gives it: `allow` or `forbid` [default:
    /// allow].
    #[schemars(example = &"forbid")]
    sudo: Option<String>,
}

impl IsolationSection {
    /// The policy, checked.
    ///
    /// # Errors
    /// Fails if there is no such property, or if a runner's id is invalid.
    pub(super) fn policy(&self) -> anyhow::Result<IsolationPolicy> {
        let demanded = self.at_least.as_deref().unwrap_or("none");
        let at_least: Isolation = demanded.parse().context(
            "at_least under [isolation] in gantry.toml is \"none\", or properties with + between them",
        )?;
        let id = |text: &String| -> anyhow::Result<RunnerId> {
            text.parse().map_err(|_| {
                anyhow!(
                    "believed under [isolation] in gantry.toml lists ids of runners, as \"gantry runners --json\" shows them, and {text:?} is none"
                )
            })
        };
        let believed = self.believed.iter().map(id).collect::<Result<_, _>>()?;
        let forbids_sudo = match self.sudo.as_deref() {
            None | Some("allow") => false,
            Some("forbid") => true,
            Some(_) => {
                return Err(anyhow!(
                    "sudo under [isolation] in gantry.toml is \"allow\" or \"forbid\""
                ));
            }
        };
        Ok(IsolationPolicy {
            at_least,
            believed,
            forbids_sudo,
        })
    }
}

#[cfg(test)]
mod tests {
    use shared_types::isolation::Property;

    use super::*;

    fn policy(text: &str) -> anyhow::Result<IsolationPolicy> {
        toml::from_str::<IsolationSection>(text)
            .expect("a section")
            .policy()
    }

    #[test]
    fn what_is_demanded_and_who_is_believed_is_set_and_by_default_nothing_and_no_runner() {
        assert_eq!(policy("").expect("it is fine"), IsolationPolicy::default());
        let runner = RunnerId::from_u128(7);
        let text = format!(
            "at_least = \"network+file_writes\"\nbelieved = [\"{runner}\"]\nsudo = \"forbid\"\n"
        );
        let IsolationPolicy {
            at_least,
            believed,
            forbids_sudo,
        } = policy(&text).expect("it is fine");
        assert!(forbids_sudo);
        assert_eq!(
            at_least,
            Isolation::of([Property::FileWrites, Property::Network])
        );
        assert_eq!(believed, [runner].into());
    }

    #[test]
    fn a_property_or_a_runner_that_is_none_keeps_the_server_from_starting() {
        for (text, key) in [
            ("at_least = \"magic\"", "at_least"),
            ("at_least = \"\"", "at_least"),
            ("believed = [\"laptop\"]", "believed"),
            ("sudo = \"perhaps\"", "sudo"),
        ] {
            let error = policy(text).expect_err("it is refused");
            assert!(error.to_string().starts_with(key), "{error}");
        }
    }
}
