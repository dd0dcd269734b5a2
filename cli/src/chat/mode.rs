//! The mode in which the agent works next.

use anyhow::Context as _;
use shared_api::SettingName;
use shared_types::Mode;

use super::Chat;

/// The mode of the next message, in words.
pub(super) async fn name(chat: &Chat) -> anyhow::Result<String> {
    let settings = chat.client.settings(Some(chat.session.id)).await?.settings;
    let in_effect = |name: SettingName| {
        let setting = settings.iter().find(|setting| setting.name == name);
        let value = setting.and_then(|setting| setting.in_effect.as_deref());
        value.map(str::parse::<Mode>).transpose()
    };
    let mode = match chat.mode {
        Some(named) => in_effect(SettingName::MaxMode)?.map_or(named, |most| named.min(most)),
        None => in_effect(SettingName::Mode)?
            .context("the server does not tell its modes; upgrade it")?,
    };
    Ok(format!("mode {mode}"))
}
