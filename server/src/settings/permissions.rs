//! `[permissions]`: the operator's rules about what agents may do, for all tenants.

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Deserialize;
use server_app::{Decision, Rule, RuleBy, SetRule};

/// The section of the file. A rule that denies goes before one that asks, and that before one that allows.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PermissionsSection {
    /// Rules for what runs without a question [default: none].
    #[schemars(example = &["Shell(cargo test *)"])]
    allow: Vec<String>,
    /// Rules for what people are asked about [default: none].
    #[schemars(example = &["Shell(git push *)"])]
    ask: Vec<String>,
    /// Rules for what never runs [default: none].
    #[schemars(example = &["Write(**/.env)"])]
    deny: Vec<String>,
}

impl PermissionsSection {
    /// The rules.
    ///
    /// # Errors
    /// Fails if one cannot be read.
    pub(super) fn rules(&self) -> anyhow::Result<Vec<SetRule>> {
        let sections = [
            (Decision::Allow, &self.allow),
            (Decision::Ask, &self.ask),
            (Decision::Deny, &self.deny),
        ];
        let mut rules = Vec::new();
        for (decision, texts) in sections {
            for text in texts {
                let rule: Rule = text.parse().with_context(|| {
                    format!("[permissions] in gantry.toml: the rule {text:?} cannot be used")
                })?;
                rules.push(SetRule {
                    rule,
                    decision,
                    by: RuleBy::Operator,
                });
            }
        }
        Ok(rules)
    }
}
