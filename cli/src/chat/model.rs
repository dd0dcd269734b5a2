//! The model that answers in one session, whatever model its user prefers elsewhere.

use anyhow::Context as _;
use shared_api::{ChangeSettings, LayerName, NewValues, Setting, SettingName};
use shared_client::Client;
use shared_types::SessionId;

use super::Chat;
use crate::render::clean::clean_line;

/// The word that removes the choice; no model can have this name.
pub(super) const NONE: &str = "-";

/// Longest choice of models that is shown, in characters.
const MAX_MODEL: usize = 200;

/// Chooses the model of a session, or removes its choice. Returns what counts then.
pub(super) async fn set(client: &Client, id: SessionId, name: &str) -> anyhow::Result<Setting> {
    let mut values = NewValues::default();
    values.set(SettingName::Model, (name != NONE).then(|| name.to_owned()));
    let change = ChangeSettings {
        layer: LayerName::Session,
        session: Some(id),
        values,
        generation: None,
    };
    let settings = client.change_settings(&change).await?;
    of(settings.settings)
}

/// The model that answers in this session, in words.
pub(super) async fn name(chat: &Chat) -> anyhow::Result<String> {
    Ok(shown(&of_session(chat).await?))
}

async fn of_session(chat: &Chat) -> anyhow::Result<Setting> {
    of(chat.client.settings(Some(chat.session.id)).await?.settings)
}

fn of(settings: Vec<Setting>) -> anyhow::Result<Setting> {
    let mut settings = settings.into_iter();
    settings
        .find(|setting| setting.name == SettingName::Model)
        .context("the server does not tell which model answers; upgrade it")
}

/// The value, and what it means where it is a tier.
fn shown(setting: &Setting) -> String {
    let value = setting.value.as_deref().unwrap_or("none");
    let text = match &setting.note {
        Some(note) => format!("{value} ({note})"),
        None => value.to_owned(),
    };
    clean_line(&text, MAX_MODEL)
}
