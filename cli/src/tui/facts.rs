//! The facts of a session in the status line: its model, mode, place, the share of the window and the cost.

use shared_api::{Me, Runner, Session, Setting, SettingName};
use shared_client::{Client, ClientError};
use shared_types::{Clock as _, Mode, SystemClock, human::cost};

use crate::{render::clean::clean_line, runners};

/// Longest name in the status line, in characters.
const MAX_NAME: usize = 60;

/// Facts about a session, as far as the server tells them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SessionFacts {
    /// The model that answers.
    pub(super) model: String,
    /// The mode of the next message.
    pub(super) mode: Option<Mode>,
    /// The runner and the folder, in a few words.
    pub(super) place: String,
    /// True if commands can run there now.
    pub(super) is_online: bool,
    /// The isolation that the runner reports.
    pub(super) isolation: String,
    /// The model's window, in tokens.
    pub(super) window: Option<u64>,
    /// The share of it that the conversation fills, in percent.
    pub(super) window_filled: Option<u64>,
    /// The cost of the session so far; absent where no paid model was asked.
    pub(super) cost: Option<String>,
}

/// Asks the server. What it does not tell is left out of the line.
pub(super) async fn ask(
    client: &Client,
    session: &Session,
    named: Option<Mode>,
) -> Result<SessionFacts, ClientError> {
    let settings = client.settings(Some(session.id)).await?.settings;
    let runners = client.runners().await?;
    let me = client.me().await?;
    let mut facts = SessionFacts {
        model: model(&settings, &me),
        mode: mode(&settings, named),
        ..SessionFacts::default()
    };
    facts.stand(session, &me, &runners);
    if let Ok(context) = client.context(session.id).await {
        facts.window = context.window.filter(|window| *window > 0);
        let filled = |window| context.tokens.saturating_mul(100) / window;
        facts.window_filled = facts.window.map(filled);
    }
    if let Ok(usage) = client.session_usage(session.id, None).await
        && usage.total.calls > 0
    {
        let total = &usage.total;
        // A cost that nobody knows is no figure.
        let is_priced = total.unpriced < total.calls;
        facts.cost = is_priced.then(|| cost(total.calls, total.cost_micros, total.unpriced));
    }
    Ok(facts)
}

impl SessionFacts {
    /// True if the session has a runner, and that is away.
    pub(super) fn is_away(&self) -> bool {
        !self.is_online && !self.isolation.is_empty()
    }

    /// Takes in where the session works.
    fn stand(&mut self, session: &Session, me: &Me, runners: &[Runner]) {
        let pin = session.runner.as_ref();
        let (id, workspace) = match pin {
            Some(pin) => (Some(pin.id), pin.workspace.as_deref()),
            None => (me.active_runner, me.active_workspace.as_deref()),
        };
        let runner = runners.iter().find(|runner| Some(runner.id) == id);
        let Some(runner) = runner else {
            self.place = match pin {
                Some(pin) => format!("{} (removed)", clean_line(&pin.name, MAX_NAME)),
                None => "no runner".to_owned(),
            };
            return;
        };
        let name = clean_line(&runners::with_workspace(&runner.name, workspace), MAX_NAME);
        let folder = clean_line(&session.directory, MAX_NAME);
        self.place = match folder.is_empty() {
            true => name,
            false => format!("{name}:{folder}"),
        };
        self.is_online = runner.online;
        self.isolation = runners::isolation(runner);
        if !runner.online || runner.draining {
            let state = runners::state(runner, SystemClock::new().now());
            self.place = format!("{} ({state})", self.place);
        }
    }
}

fn model(settings: &[Setting], me: &Me) -> String {
    if me.model.practice {
        return "practice model".to_owned();
    }
    let setting = find(settings, SettingName::Model);
    let value = setting.and_then(|setting| setting.value.as_deref());
    clean_line(value.unwrap_or("no model"), MAX_NAME)
}

fn mode(settings: &[Setting], named: Option<Mode>) -> Option<Mode> {
    let in_effect = |name| {
        let setting = find(settings, name)?;
        setting.in_effect.as_deref()?.parse::<Mode>().ok()
    };
    match named {
        Some(named) => Some(in_effect(SettingName::MaxMode).map_or(named, |most| named.min(most))),
        None => in_effect(SettingName::Mode),
    }
}

fn find(settings: &[Setting], name: SettingName) -> Option<&Setting> {
    settings.iter().find(|setting| setting.name == name)
}
