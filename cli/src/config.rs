//! Settings: listing what counts, and changing it.

use anyhow::anyhow;
use shared_api::{ChangeSettings, LayerName, NewValues, SetBy, Setting, SettingName, Settings};
use shared_client::Client;
use shared_types::{Clock as _, SystemClock, Timestamp, human::ago};

use crate::{
    args::{Config, Layer, ListConfig, values},
    pick,
    screen::Screen,
    table::Table,
};

/// Changes settings, and shows the values that count then.
pub(crate) async fn run(client: &Client, screen: Screen, command: Config) -> anyhow::Result<()> {
    let mut new = NewValues::default();
    let layer = match command {
        Config::Set {
            values: typed,
            layer,
        } => {
            for (name, value) in values(&typed).map_err(|wrong| anyhow!(wrong))? {
                new.set(name, Some(value));
            }
            layer
        }
        Config::Unset { names, layer } => {
            for name in names {
                new.set(name, None);
            }
            layer
        }
    };
    let changed = new.clone().given();
    let (layer, session) = match layer {
        Layer { tenant: true, .. } => (LayerName::Tenant, None),
        Layer { session: None, .. } => (LayerName::User, None),
        Layer {
            session: Some(name),
            ..
        } => (
            LayerName::Session,
            Some(pick::session_id(client, &name).await?),
        ),
    };
    let change = ChangeSettings {
        layer,
        session,
        values: new,
        generation: None,
    };
    let mut settings = client.change_settings(&change).await?;
    let is_changed = |name| changed.iter().any(|(changed, _)| *changed == name);
    settings.settings.retain(|setting| is_changed(setting.name));
    show(screen, &settings)?;
    for (name, value) in changed {
        let counts = settings.settings.iter().find(|it| it.name == name);
        if let (Some(counts), Some(_)) = (counts, value)
            && counts.set_by != set_by(layer)
        {
            screen.note(&format!(
                "{}: set for the {}; what counts for you is set by the {}",
                name.word(),
                word(set_by(layer)),
                word(counts.set_by),
            ));
        }
    }
    Ok(())
}

/// Lists what counts.
pub(crate) async fn list(client: &Client, screen: Screen, args: &ListConfig) -> anyhow::Result<()> {
    let session = match &args.session {
        Some(name) => Some(pick::session_id(client, name).await?),
        None => None,
    };
    let settings = client.settings(session).await?;
    match args.json {
        true => screen.json(&settings),
        false => show(screen, &settings),
    }
}

fn show(screen: Screen, settings: &Settings) -> anyhow::Result<()> {
    let now = SystemClock::new().now();
    let mut table = Table::new(["SETTING", "VALUE", "SET BY", "SINCE"]);
    for setting in &settings.settings {
        table.row([
            setting.name.word().to_owned(),
            value(setting),
            who(setting),
            since(setting.since, now),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))?;
    screen.note(&format!(
        "generation {}; a change counts from the next message, one of the model from the next step",
        settings.generation
    ));
    Ok(())
}

fn value(setting: &Setting) -> String {
    let value = match (&setting.value, setting.name) {
        (Some(value), _) => value.clone(),
        (None, SettingName::Language) => "as the model chooses".to_owned(),
        (None, SettingName::Mode) => "by the isolation".to_owned(),
        (None, SettingName::MaxMode) => "full".to_owned(),
        (None, _) => "none".to_owned(),
    };
    match &setting.note {
        Some(note) => format!("{value} ({note})"),
        None => value,
    }
}

fn who(setting: &Setting) -> String {
    let layer = word(setting.set_by);
    match &setting.who {
        Some(who) => format!("{layer} ({who})"),
        None => layer.to_owned(),
    }
}

fn since(since: Option<Timestamp>, now: Timestamp) -> String {
    since.map_or_else(String::new, |since| ago(now.since(since)))
}

fn word(set_by: SetBy) -> &'static str {
    match set_by {
        SetBy::Default => "default",
        SetBy::Operator => "operator",
        SetBy::Tenant => "tenant",
        SetBy::User => "user",
        SetBy::Session => "session",
    }
}

fn set_by(layer: LayerName) -> SetBy {
    match layer {
        LayerName::Tenant => SetBy::Tenant,
        LayerName::User => SetBy::User,
        LayerName::Session => SetBy::Session,
    }
}
