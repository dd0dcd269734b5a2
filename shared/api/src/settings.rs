//! The messages about settings.

use serde::{Deserialize, Deserializer, Serialize};
use shared_types::{SessionId, Timestamp};

/// The settings of a tenant, a user and a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum SettingName {
    /// The runner on which turns work.
    Runner,
    /// The model that answers.
    Model,
    /// The language of the answers.
    Language,
    /// The most model calls in a turn.
    Steps,
    /// The mode of agents; absent where the isolation of the place decides.
    Mode,
    /// The most freedom of agents; only the tenant sets it.
    MaxMode,
    /// The isolation that a sandbox needs before anything runs there; only the tenant sets it.
    Isolation,
    /// Permission for commands to be root in their sandbox; only the tenant sets it.
    Sudo,
}

/// The layer that set a value. Each goes before those above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum SetBy {
    /// No layer.
    Default,
    /// The operator, in the server's configuration.
    Operator,
    /// An admin, for the tenant.
    Tenant,
    /// The person.
    User,
    /// The person, for one session.
    Session,
}

/// The layer to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum LayerName {
    /// The caller's own values.
    User,
    /// The values of one session.
    Session,
    /// The tenant's values; changing them takes an admin.
    Tenant,
}

messages! {
    /// The value of a setting that counts, and the layer that set it.
    pub struct Setting {
        /// The setting.
        pub name: SettingName,
        /// The value; absent for no runner, and for a language that the model chooses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub value: Option<String>,
        /// The layer that has set it.
        pub set_by: SetBy,
        /// The name of the person who has set it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub who: Option<String>,
        /// When it was set, where the server knows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub since: Option<Timestamp>,
        /// The value under which the next turn works, where settings alone do not decide it: of `mode` and `max_mode`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub in_effect: Option<String>,
        /// The reason why no turn can run with it, such as `removed`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub note: Option<String>,
        /// The allowed values, for people.
        pub allowed: String,
    }

    /// The values that count for a person, or for one of the person's sessions.
    pub struct Settings {
        /// A number that grows with each change of a setting in the tenant.
        pub generation: u64,
        /// Each setting once.
        pub settings: Vec<Setting>,
    }

    /// Changes settings, all of them or none. New values count from the next message on.
    #[serde(deny_unknown_fields)]
    pub struct ChangeSettings {
        /// The layer to change.
        pub layer: LayerName,
        /// The session; only with the layer `session`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub session: Option<SessionId>,
        /// The new values.
        pub values: NewValues,
        /// The generation that the caller has read. If the settings have changed since, nothing is done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub generation: Option<u64>,
    }
}

/// New values. Absent fields stay as they are. Null removes a value, so that a wider layer counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewValues {
    /// The name or id of a runner.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required = false, min_length = 1, max_length = 63))]
    pub runner: Option<Option<String>>,
    /// The name of a model that the server offers.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required = false, min_length = 1, max_length = 128))]
    pub model: Option<Option<String>>,
    /// The name of a language, such as `German`.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required = false, min_length = 1, max_length = 40))]
    pub language: Option<Option<String>>,
    /// A number from 1 to 500, as text.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required = false, pattern = "^([1-9][0-9]?|[1-4][0-9]{2}|500)$"))]
    pub steps: Option<Option<String>>,
    /// A mode: `plan`, `ask`, `auto` or `full`.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required = false, pattern = "^(plan|ask|auto|full)$"))]
    pub mode: Option<Option<String>>,
    /// The most freedom of agents, as a mode; only in the tenant's layer.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required = false, pattern = "^(plan|ask|auto|full)$"))]
    pub max_mode: Option<Option<String>>,
    /// `none`, or properties joined by `+`, such as `network+file_writes`; only in the tenant's layer.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required = false, min_length = 1, max_length = 128))]
    pub isolation: Option<Option<String>>,
    /// `allow` or `forbid`; only in the tenant's layer.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required = false, pattern = "^(allow|forbid)$"))]
    pub sudo: Option<Option<String>>,
}

impl NewValues {
    /// Sets this value, or removes it.
    pub fn set(&mut self, name: SettingName, value: Option<String>) {
        *self.place(name) = Some(value);
    }

    /// The values that the request contains, with `None` for null.
    pub fn given(mut self) -> Vec<(SettingName, Option<String>)> {
        let mut given = Vec::new();
        for name in SettingName::ALL {
            given.extend(self.place(name).take().map(|value| (name, value)));
        }
        given
    }

    fn place(&mut self, name: SettingName) -> &mut Option<Option<String>> {
        match name {
            SettingName::Runner => &mut self.runner,
            SettingName::Model => &mut self.model,
            SettingName::Language => &mut self.language,
            SettingName::Steps => &mut self.steps,
            SettingName::Mode => &mut self.mode,
            SettingName::MaxMode => &mut self.max_mode,
            SettingName::Isolation => &mut self.isolation,
            SettingName::Sudo => &mut self.sudo,
        }
    }
}

impl SettingName {
    /// Every setting, in the order in which lists show them.
    pub const ALL: [Self; 8] = [
        Self::Runner,
        Self::Model,
        Self::Language,
        Self::Steps,
        Self::Mode,
        Self::MaxMode,
        Self::Isolation,
        Self::Sudo,
    ];

    /// Its name on the wire and on command lines.
    pub fn word(self) -> &'static str {
        match self {
            Self::Runner => "runner",
            Self::Model => "model",
            Self::Language => "language",
            Self::Steps => "steps",
            Self::Mode => "mode",
            Self::MaxMode => "max_mode",
            Self::Isolation => "isolation",
            Self::Sudo => "sudo",
        }
    }
}

/// Distinguishes null from an absent field.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_takes_a_value_back_and_what_is_absent_stays() {
        let values: NewValues = serde_json::from_value(serde_json::json!({
            "runner": null, "steps": "9",
        }))
        .expect("they are read");
        let given = [
            (SettingName::Runner, None),
            (SettingName::Steps, Some("9".to_owned())),
        ];
        assert_eq!(values.clone().given(), given);
        let json = serde_json::to_value(values).expect("they are JSON");
        assert_eq!(json, serde_json::json!({ "runner": null, "steps": "9" }));
    }
}
