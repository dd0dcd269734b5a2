//! The mode of the agent in one session, whatever mode its user prefers elsewhere.
//!
//! The server decides the mode of each turn. This is the client's account of it: a setting counts, else the
//! isolation of the place decides, and no mode is freer than the ceilings of the tenant and of the machine.

use anyhow::Context as _;
use shared_api::{ChangeSettings, LayerName, NewValues, Runner, SetBy, Setting, SettingName};
use shared_types::Mode;

use super::Chat;

/// The word that removes the choice; no mode has this name.
const NONE: &str = "-";

/// The isolation of a place that keeps nothing apart.
const NO_ISOLATION: &str = "none";

/// Chooses the mode of this session, or removes its choice, and says what counts from its next message on.
pub(super) async fn choose(chat: &mut Chat, name: &str) -> anyhow::Result<()> {
    let mode = match name {
        NONE => None,
        name => Some(name.parse::<Mode>()?),
    };
    let mut values = NewValues::default();
    values.set(SettingName::Mode, mode.map(|mode| mode.name().to_owned()));
    let change = ChangeSettings {
        layer: LayerName::Session,
        session: Some(chat.session.id),
        values,
        generation: None,
    };
    chat.client.change_settings(&change).await?;
    // The mode of the command line goes before every setting, and would hide this choice.
    chat.mode = None;
    let counts = counting(chat).await?.words();
    chat.view
        .aside(&format!("from the next message on: {counts}"))
}

/// Shows the mode that counts, and says who set it.
pub(super) async fn show(chat: &mut Chat) -> anyhow::Result<()> {
    let counts = counting(chat).await?;
    let advice = match counts.set_by {
        Origin::Session => "/mode - goes back to your own choice",
        _ => "/mode plan, ask, auto or full sets it for this session",
    };
    chat.view.aside(&format!("{} · {advice}", counts.words()))
}

/// The mode of the next message, for the first line of a conversation.
pub(super) async fn name(chat: &Chat) -> anyhow::Result<String> {
    Ok(format!("mode {}", counting(chat).await?.mode))
}

/// The mode of the next message.
async fn counting(chat: &Chat) -> anyhow::Result<Counting> {
    let settings = chat.client.settings(Some(chat.session.id)).await?.settings;
    let runners = chat.client.runners().await?;
    let place = match &chat.session.runner {
        Some(pin) => Some(pin.id),
        None => chat.client.me().await?.active_runner,
    };
    let runner = runners.iter().find(|runner| Some(runner.id) == place);
    decide(chat.mode, &settings, runner)
}

#[derive(Debug, PartialEq, Eq)]
struct Counting {
    mode: Mode,
    set_by: Origin,
    /// The freer mode that was chosen, where a ceiling cut it.
    cut: Option<Mode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    CommandLine,
    Session,
    User,
    Tenant,
    Operator,
    Isolation,
}

impl Counting {
    fn words(&self) -> String {
        let origin = match self.set_by {
            Origin::CommandLine => "--mode",
            Origin::Session => "set for this session",
            Origin::User => "your own choice",
            Origin::Tenant => "set for everyone",
            Origin::Operator => "set by the operator",
            Origin::Isolation => "by the isolation of the place",
        };
        let cut = self.cut.map_or_else(String::new, |freer| {
            format!(", and a ceiling forbids {freer}")
        });
        format!("mode {} ({}): {origin}{cut}", self.mode, self.mode.means())
    }
}

/// The mode of a message that names this one or none, under these settings on this runner.
fn decide(
    named: Option<Mode>,
    settings: &[Setting],
    runner: Option<&Runner>,
) -> anyhow::Result<Counting> {
    let setting = find(settings, SettingName::Mode)
        .context("the server does not tell its modes; upgrade it")?;
    let (chosen, set_by) = match (named, mode_of(setting)?) {
        (Some(mode), _) => (mode, Origin::CommandLine),
        (None, Some(mode)) => (mode, origin(setting.set_by)),
        (None, None) => (usual(runner), Origin::Isolation),
    };
    let of_tenant = match find(settings, SettingName::MaxMode) {
        Some(most) => mode_of(most)?,
        None => None,
    };
    let of_machine = runner.and_then(|runner| runner.ceiling);
    let ceilings = of_tenant.into_iter().chain(of_machine);
    let mode = ceilings.fold(chosen, Mode::min);
    Ok(Counting {
        mode,
        set_by,
        cut: (mode != chosen).then_some(chosen),
    })
}

fn find(settings: &[Setting], name: SettingName) -> Option<&Setting> {
    settings.iter().find(|setting| setting.name == name)
}

fn mode_of(setting: &Setting) -> anyhow::Result<Option<Mode>> {
    let value = setting.value.as_deref();
    Ok(value.map(str::parse).transpose()?)
}

/// The mode where none is set. Only an isolation that was granted counts.
fn usual(runner: Option<&Runner>) -> Mode {
    match runner {
        Some(runner) if runner.isolation_believed && runner.isolation != NO_ISOLATION => Mode::Auto,
        _ => Mode::Ask,
    }
}

fn origin(set_by: SetBy) -> Origin {
    match set_by {
        SetBy::Session => Origin::Session,
        SetBy::User => Origin::User,
        SetBy::Tenant => Origin::Tenant,
        SetBy::Operator => Origin::Operator,
        SetBy::Default => Origin::Isolation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: SettingName, value: Option<&str>, set_by: SetBy) -> Setting {
        Setting {
            name,
            value: value.map(str::to_owned),
            set_by,
            who: None,
            since: None,
            in_effect: None,
            note: None,
            allowed: String::new(),
        }
    }

    #[test]
    fn the_command_line_goes_before_the_session_and_both_stay_below_the_ceiling() {
        let settings = [
            setting(SettingName::Mode, Some("full"), SetBy::Session),
            setting(SettingName::MaxMode, Some("auto"), SetBy::Tenant),
        ];
        let counting = |named| decide(named, &settings, None).expect("these are modes");
        let of_session = Counting {
            mode: Mode::Auto,
            set_by: Origin::Session,
            cut: Some(Mode::Full),
        };
        assert_eq!(counting(None), of_session);
        let of_command_line = Counting {
            mode: Mode::Plan,
            set_by: Origin::CommandLine,
            cut: None,
        };
        assert_eq!(counting(Some(Mode::Plan)), of_command_line);
    }

    #[test]
    fn an_agent_without_a_setting_and_without_a_place_asks() {
        let settings = [setting(SettingName::Mode, None, SetBy::Default)];
        let counting = decide(None, &settings, None).expect("these are modes");
        assert_eq!(counting.mode, Mode::Ask);
        assert_eq!(counting.set_by, Origin::Isolation);
    }

    #[test]
    fn a_mode_that_this_client_does_not_know_is_an_error() {
        let settings = [setting(SettingName::Mode, Some("wild"), SetBy::User)];
        assert!(decide(None, &settings, None).is_err());
    }
}
