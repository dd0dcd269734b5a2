//! The model that answers in one session, whatever model its user prefers elsewhere.

use anyhow::Context as _;
use shared_api::{ChangeSettings, LayerName, NewValues, SetBy, Setting, SettingName};
use shared_client::Client;
use shared_types::SessionId;

use super::Chat;
use crate::{models, render::clean::clean_line};

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

/// Chooses the model of this session, and says what answers from its next step on.
pub(super) async fn choose(chat: &mut Chat, name: &str) -> anyhow::Result<()> {
    let setting = set(&chat.client, chat.session.id, name).await?;
    let counts = shown(&setting);
    chat.view.aside(&format!("from the next step on: {counts}"))
}

/// Lists the models, and says which one answers in this session.
pub(super) async fn list(chat: &mut Chat) -> anyhow::Result<()> {
    models::list(&chat.client, chat.screen, false).await?;
    let setting = of_session(chat).await?;
    let (counts, advice) = (
        shown(&setting),
        match setting.set_by {
            SetBy::Session => "for this session; /model - goes back to your own choice",
            _ => "/model NAME chooses another one for this session",
        },
    );
    chat.view.aside(&format!("{counts} · {advice}"))
}

/// The model that answers in this session, in words.
pub(super) async fn name(chat: &Chat) -> anyhow::Result<String> {
    Ok(shown(&of_session(chat).await?))
}

/// The choice of this session alone, where it has one.
pub(super) async fn of_this_session(chat: &Chat) -> anyhow::Result<Option<String>> {
    let setting = of_session(chat).await?;
    let is_own = setting.set_by == SetBy::Session;
    Ok(setting.value.filter(|_| is_own))
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
