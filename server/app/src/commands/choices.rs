//! Commands that show a choice and change it: model, runner, mode and the other settings.

use shared_types::{Mode, human::ago};

use super::{Asked, CommandDone, Commands, Shown};
use crate::{
    AppError, ChangeSettings, Runner, Setting, SettingLayer, SettingName,
    models::{Health, ModelState},
    settings::SetBy,
};

/// Most runners that are listed.
const RUNNERS_LISTED: u32 = 50;

/// The word that removes a choice; nothing that can be chosen has this name.
const NONE: &str = "-";

/// Mark of the row that counts.
const COUNTS: &str = "*";

impl Commands {
    pub(super) async fn model(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        if !asked.words.is_empty() {
            let model = self.choose(asked, SettingName::Model).await?;
            return Ok(CommandDone::text(format!(
                "from the next step on: {}",
                value(&model)
            )));
        }
        let models = self.models.list(asked.ctx).await?;
        let chosen = self.setting(asked, SettingName::Model).await?;
        let rows = models.into_iter().map(|model| {
            let counts = chosen.value.as_ref() == Some(&model.name);
            let window = model.profile.window.map(|window| window.to_string());
            let state = match model.state {
                ModelState::Vendor(Health::Ready) => "ready".to_owned(),
                ModelState::Vendor(Health::CoolingDown(_, error) | Health::Refused(error)) => {
                    error.to_string()
                }
                ModelState::Away(reason) => reason,
            };
            vec![
                if counts { COUNTS } else { "" }.to_owned(),
                model.name,
                window.unwrap_or_else(|| "?".to_owned()),
                model.account,
                state,
            ]
        });
        let advice = match chosen.set_by {
            SetBy::Layer(SettingLayer::Session) => {
                "for this session; /model - goes back to your own choice"
            }
            _ => "/model NAME chooses another one for this session",
        };
        Ok(CommandDone::shown([
            Shown::Table {
                columns: vec!["", "MODEL", "WINDOW", "ACCOUNT", "STATE"],
                rows: rows.collect(),
            },
            Shown::Text(format!("{} · {advice}", value(&chosen))),
        ]))
    }

    pub(super) async fn runner(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        if !asked.words.is_empty() {
            let named = (asked.words != NONE).then_some(asked.words);
            let session = self.sessions.pin(asked.ctx, asked.id(), named).await?;
            let place = self.place(asked, &session).await?;
            return Ok(CommandDone {
                // Its pin is another one.
                session: Some(session),
                ..CommandDone::text(format!("from the next message on: {place}"))
            });
        }
        let (runners, _) = self.runners.list(asked.ctx, "", RUNNERS_LISTED).await?;
        let pin = asked.session.pin.as_ref().map(|pin| pin.runner);
        let rows = runners.iter().map(|runner| {
            let counts = match pin {
                Some(pin) => pin == runner.id,
                None => runner.active,
            };
            vec![
                if counts { COUNTS } else { "" }.to_owned(),
                runner.name.clone(),
                self.state(runner),
                isolation(runner),
            ]
        });
        let mut shown = vec![Shown::Table {
            columns: vec!["", "RUNNER", "STATE", "ISOLATION"],
            rows: rows.collect(),
        }];
        let place = self.place(asked, &asked.session).await?;
        let advice = match pin {
            Some(_) => "/runner - goes back to your active runner",
            None => "/runner NAME pins this session to another one",
        };
        shown.push(Shown::Text(format!("{place} · {advice}")));
        Ok(CommandDone::shown(shown))
    }

    pub(super) async fn mode(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        if asked.words.is_empty() {
            let words = self.mode_in_words(asked, asked.terms.mode).await?;
            let advice = "/mode plan, ask, auto or full sets it for this session";
            return Ok(CommandDone::text(format!("{words} · {advice}")));
        }
        asked.by_a_person("name the mode with each message (gantry chat --mode MODE)")?;
        self.choose(asked, SettingName::Mode).await?;
        let words = self.mode_in_words(asked, None).await?;
        Ok(CommandDone {
            sets_mode: true,
            ..CommandDone::text(format!("from the next message on: {words}"))
        })
    }

    /// `mode ask (asks before …): set for this session`.
    pub(super) async fn mode_in_words(
        &self,
        asked: &Asked<'_>,
        named: Option<Mode>,
    ) -> Result<String, AppError> {
        let in_effect = self.settings.mode(asked.ctx, Some(asked.id())).await?;
        let mode = named.map_or(in_effect.mode, |named| in_effect.named(named));
        let chosen = named.or(in_effect.set);
        let cut = chosen.filter(|chosen| *chosen != mode);
        let cut = cut.map_or_else(String::new, |freer| {
            format!(", and a ceiling forbids {freer}")
        });
        let origin = match named {
            Some(_) => "named with your messages",
            None if chosen.is_none() => "by the isolation of the place",
            None => set_by(self.setting(asked, SettingName::Mode).await?.set_by),
        };
        Ok(format!("mode {mode} ({}): {origin}{cut}", mode.means()))
    }

    pub(super) async fn config(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let (name, new) = match asked.words.split_once(char::is_whitespace) {
            Some((name, new)) => (name, Some(new.trim())),
            None => (asked.words, None),
        };
        if name.is_empty() {
            let settings = self.settings.list(asked.ctx, Some(asked.id())).await?;
            let rows = settings.settings.iter().map(|setting| {
                let name = setting.name.to_string();
                vec![name, value(setting), set_by(setting.set_by).to_owned()]
            });
            return Ok(CommandDone::shown([Shown::Table {
                columns: vec!["SETTING", "VALUE", "SET BY"],
                rows: rows.collect(),
            }]));
        }
        let known = SettingName::ALL.into_iter();
        let mut known = known.filter(|known| known.to_string() == name);
        let Some(name) = known.next() else {
            let all = SettingName::ALL.map(|name| name.to_string()).join(", ");
            return Err(AppError::Invalid(format!(
                "there is no such setting; there are: {all}"
            )));
        };
        let Some(new) = new else {
            let setting = self.setting(asked, name).await?;
            return Ok(CommandDone::text(format!(
                "{name} is {} ({}); allowed: {}",
                value(&setting),
                set_by(setting.set_by),
                setting.allowed
            )));
        };
        asked.by_a_person("change it with: gantry config set NAME VALUE")?;
        let changed = self.change(asked, SettingLayer::User, name, new).await?;
        let setting = find(changed, name)?;
        let wider = match setting.set_by {
            SetBy::Layer(SettingLayer::Session) => ", because this session has a choice of its own",
            _ => "",
        };
        Ok(CommandDone::text(format!(
            "from the next message on, {name} is {} here{wider}",
            value(&setting)
        )))
    }

    /// Sets a value for this session, or removes it, and returns what counts then.
    async fn choose(&self, asked: &Asked<'_>, name: SettingName) -> Result<Setting, AppError> {
        self.change(asked, SettingLayer::Session, name, asked.words)
            .await?;
        self.setting(asked, name).await
    }

    /// Changes a value of the session or the user. Returns what counts in the session then.
    async fn change(
        &self,
        asked: &Asked<'_>,
        layer: SettingLayer,
        name: SettingName,
        new: &str,
    ) -> Result<Vec<Setting>, AppError> {
        let change = ChangeSettings {
            layer,
            session: (layer == SettingLayer::Session).then(|| asked.id()),
            values: vec![(name, (new != NONE).then(|| new.to_owned()))],
            generation: None,
        };
        self.settings.change(asked.ctx, change).await?;
        let settings = self.settings.list(asked.ctx, Some(asked.id())).await?;
        Ok(settings.settings)
    }

    pub(super) async fn setting(
        &self,
        asked: &Asked<'_>,
        name: SettingName,
    ) -> Result<Setting, AppError> {
        let settings = self.settings.list(asked.ctx, Some(asked.id())).await?;
        find(settings.settings, name)
    }

    /// The place where a session works, in words.
    pub(super) async fn place(
        &self,
        asked: &Asked<'_>,
        session: &crate::Session,
    ) -> Result<String, AppError> {
        let settings = self.settings.list(asked.ctx, Some(session.id)).await?;
        let chosen = find(settings.settings, SettingName::Runner)?;
        let Some(name) = &chosen.value else {
            return Ok("no runner (/runner NAME)".to_owned());
        };
        let directory = match session.directory.as_str() {
            "" => String::new(),
            directory => format!(" · in {directory}"),
        };
        let whose = match chosen.set_by {
            SetBy::Layer(SettingLayer::Session) => " for this session",
            SetBy::Layer(SettingLayer::Tenant) => ", the tenant's default",
            _ => "",
        };
        let (runners, _) = self.runners.list(asked.ctx, "", RUNNERS_LISTED).await?;
        let of_name = name.split('/').next().unwrap_or_default();
        let runner = runners.iter().find(|runner| match &session.pin {
            Some(pin) => pin.runner == runner.id,
            None => runner.active && runner.name == of_name,
        });
        Ok(match (runner, chosen.note) {
            (Some(runner), None) => format!(
                "runner {name}{whose}{directory} · {} · isolation: {}",
                self.state(runner),
                isolation(runner)
            ),
            (_, Some(note)) => format!("runner {name}, {note} (/runner NAME)"),
            (None, None) => format!("runner {name}{whose}{directory}"),
        })
    }

    fn state(&self, runner: &Runner) -> String {
        match runner.last_seen {
            _ if runner.locked => "locked: its folder was copied".to_owned(),
            _ if runner.drained_by.is_some() && runner.online => "draining".to_owned(),
            _ if runner.online => "online".to_owned(),
            Some(seen) => format!("offline, last seen {}", ago(self.clock.now().since(seen))),
            None => "never connected".to_owned(),
        }
    }
}

fn isolation(runner: &Runner) -> String {
    let word = if runner.believed {
        "granted"
    } else {
        "reported"
    };
    format!("{} ({word})", runner.isolation)
}

fn find(settings: Vec<Setting>, name: SettingName) -> Result<Setting, AppError> {
    let mut settings = settings.into_iter();
    let found = settings.find(|setting| setting.name == name);
    found.ok_or(AppError::NotFound("setting"))
}

/// The value, with what it means and why it cannot be used, where it cannot.
pub(super) fn value(setting: &Setting) -> String {
    let value = match (&setting.value, &setting.in_effect) {
        (None, Some(in_effect)) => in_effect.clone(),
        (Some(set), Some(in_effect)) if set != in_effect => format!("{set}, cut to {in_effect}"),
        (Some(set), _) => set.clone(),
        (None, None) => "none".to_owned(),
    };
    match setting.note {
        Some(note) => format!("{value} ({note})"),
        None => value,
    }
}

fn set_by(layer: SetBy) -> &'static str {
    match layer {
        SetBy::Layer(SettingLayer::Session) => "set for this session",
        SetBy::Layer(SettingLayer::User) => "your own choice",
        SetBy::Layer(SettingLayer::Tenant) => "set for everyone",
        SetBy::Operator => "set by the operator",
        SetBy::Default => "by default",
    }
}
