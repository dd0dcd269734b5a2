//! Lists to choose from: sessions, models, runners, and the messages to go back to.

use cli_screen::{
    paint::flow::Flow,
    surface::{Choice, Picker},
    transcript::Transcript,
};
use shared_api::{ModelState, OfferedModel, Rewind, Rewound, Runner, Session};
use shared_client::ClientError;
use shared_types::{
    Clock as _, Event, SessionEvent, SessionId, SystemClock, TurnId, clean::clean_line, human::ago,
};

use tokio::time::Instant;

use super::{Overlay, Tui, outbox::OutgoingKind, requests::Offer};
use crate::runners;

/// Longest label in a list, in characters.
const MAX_LABEL: usize = 100;

/// Most rows of a preview.
const PREVIEW_ROWS: usize = 12;

/// The parts of a session that go back to an earlier state.
struct BackTo {
    label: &'static str,
    detail: &'static str,
    conversation: bool,
    files: bool,
}

const BACK_TO: [BackTo; 3] = [
    BackTo {
        label: "the conversation and the files",
        detail: "files that something else changed since stay",
        conversation: true,
        files: true,
    },
    BackTo {
        label: "the conversation only",
        detail: "the files stay as they are",
        conversation: true,
        files: false,
    },
    BackTo {
        label: "the files only",
        detail: "the agent still knows what was said",
        conversation: false,
        files: true,
    },
];

/// The things of a list, in the order of its rows.
pub(super) enum Offered {
    /// Sessions to go on in.
    Sessions(Vec<Session>),
    /// Commands, one for each row.
    Lines(Vec<String>),
    /// Messages to go back to, the newest first.
    Messages(Vec<EarlierMessage>),
    /// The parts that can go back with a message.
    Parts(EarlierMessage),
}

/// A message of the session that a person can go back to.
#[derive(Debug, Clone)]
pub(super) struct EarlierMessage {
    /// The turn that it started.
    turn: TurnId,
    /// Its words.
    text: String,
    /// True if calls of its turn or of a later one changed files.
    has_changes: bool,
}

impl Tui {
    /// Shows a list, once the server has told it.
    pub(super) fn offer(&mut self, offer: Offer) {
        if matches!(self.overlay, Overlay::Question(_) | Overlay::Page(_)) {
            return;
        }
        // The keys of a person who went on typing must not choose.
        if self.key_at > self.list_asked_at {
            return self.note("the list came late, while you typed; ask for it again");
        }
        let shown = match offer {
            Offer::Sessions(sessions) => sessions.map(|sessions| self.sessions(sessions)),
            Offer::Models(models) => models.map(models_offered),
            Offer::Runners(runners) => runners.map(runners_offered),
            Offer::Messages(events) => events.map(|events| messages_offered(&events)),
        };
        match shown {
            Ok(Some(list)) => {
                self.overlay = Overlay::List(Box::new(list.picker), list.offered);
                self.preview(0);
            }
            Ok(None) => self.note("there is nothing to choose from"),
            Err(error) => self.offer_failed(error),
        }
    }

    fn offer_failed(&mut self, error: ClientError) {
        let error = self.talk.told(error);
        self.warn(error);
    }

    fn sessions(&self, sessions: Vec<Session>) -> Option<List> {
        let now = SystemClock::new().now();
        let here = self.talk.session.id;
        let sessions: Vec<_> = sessions
            .into_iter()
            .filter(|session| session.id != here)
            .collect();
        let choices = sessions.iter().map(|session| {
            let title = clean_line(&session.title, MAX_LABEL);
            let working = if session.running_turn.is_some() {
                " · works"
            } else {
                ""
            };
            Choice {
                label: if title.is_empty() {
                    "a session without messages".to_owned()
                } else {
                    title
                },
                detail: format!("{}{working}", ago(now.since(session.updated_at))),
                is_enabled: true,
                ..Choice::default()
            }
        });
        let choices = choices.collect();
        List::of("Go on in a session", choices, Offered::Sessions(sessions))
    }

    /// `/rewind`: offers the messages of this session.
    pub(super) fn offer_messages(&mut self) {
        if self.is_working() {
            return self.note("a turn works: stop it with Esc, then go back");
        }
        self.list_asked_at = Some(Instant::now());
        self.requests.messages(self.talk.session.id);
    }

    /// The row of the list that stands out has changed.
    pub(super) fn preview(&mut self, at: usize) {
        if let Overlay::List(_, Offered::Sessions(sessions)) = &self.overlay
            && let Some(session) = sessions.get(at)
        {
            self.requests.preview(session.clone());
        }
    }

    /// Shows the last exchange of a session below the list.
    pub(super) fn previewed(&mut self, id: SessionId, events: &[SessionEvent]) {
        let columns = usize::from(self.stage.size().columns);
        let Overlay::List(picker, Offered::Sessions(sessions)) = &mut self.overlay else {
            return;
        };
        let Some(at) = sessions.iter().position(|session| session.id == id) else {
            return;
        };
        let mut transcript = Transcript::new();
        let is_message =
            |event: &SessionEvent| matches!(event.known(), Some(Event::InputAccepted { .. }));
        let from = events.iter().rposition(is_message).unwrap_or(0);
        events[from..]
            .iter()
            .for_each(|event| transcript.event(event));
        let step = Flow::new().advance(&transcript, columns);
        let mut lines: Vec<_> = step.printed.into_iter().chain(step.live).collect();
        lines.truncate(PREVIEW_ROWS);
        picker.set_preview(at, lines);
    }

    /// Does what the chosen row says.
    pub(super) fn choose(&mut self, at: usize) {
        let Overlay::List(_, offered) = std::mem::replace(&mut self.overlay, Overlay::None) else {
            return;
        };
        match offered {
            Offered::Sessions(sessions) => {
                if let Some(session) = sessions.get(at) {
                    self.command_line(&format!("/resume {}", session.id));
                }
            }
            Offered::Lines(lines) => {
                if let Some(line) = lines.get(at) {
                    self.command_line(line);
                }
            }
            Offered::Messages(messages) => {
                if let Some(message) = messages.into_iter().nth(at) {
                    self.rewind_from(message);
                }
            }
            Offered::Parts(message) => self.rewind(&message, at),
        }
        self.fetch_question();
    }

    /// Asks what goes back. Where no file was changed, the conversation does.
    fn rewind_from(&mut self, message: EarlierMessage) {
        if !message.has_changes {
            return self.rewind(&message, 0);
        }
        let choice = |part: &BackTo| Choice {
            label: part.label.to_owned(),
            detail: part.detail.to_owned(),
            is_enabled: true,
            ..Choice::default()
        };
        let choices = BACK_TO.iter().map(choice).collect();
        let title = clean_line(message.text.lines().next().unwrap_or_default(), MAX_LABEL);
        let picker = Picker::new(format!("Go back to before: {title}"), choices);
        self.overlay = Overlay::List(Box::new(picker), Offered::Parts(message));
    }

    fn rewind(&mut self, message: &EarlierMessage, at: usize) {
        let Some(part) = BACK_TO.get(at) else {
            return;
        };
        let rewind = Rewind {
            turn: message.turn,
            conversation: part.conversation,
            files: part.files && message.has_changes,
        };
        self.requests.rewind(self.talk.session.id, rewind);
    }

    /// The session went back: the message stands in the box again, to be changed and sent.
    pub(super) fn rewound(&mut self, rewound: Result<Rewound, ClientError>) {
        let rewound = match rewound {
            Ok(rewound) => rewound,
            Err(error) => return self.offer_failed(error),
        };
        let restored = rewound.files.iter().filter(|file| file.restored).count();
        if restored > 0 {
            let files = if restored == 1 {
                "file is"
            } else {
                "files are"
            };
            self.note(format!("{restored} {files} as before"));
        }
        for file in rewound.files.iter().filter(|file| !file.restored) {
            let reason = file.reason.as_deref().unwrap_or("it was left as it is");
            self.warn(format!("{} stays: {reason}", file.path));
        }
        self.put_back(&rewound.text);
        self.ask_facts();
    }

    fn command_line(&mut self, line: &str) {
        let between_turns = self.talk.is_between_turns(line);
        self.post(line, OutgoingKind::Command { between_turns });
    }

    /// Closes a list, because a question has come.
    pub(super) fn close_list(&mut self) {
        if matches!(self.overlay, Overlay::List(..)) {
            self.overlay = Overlay::None;
        }
    }
}

/// A list on the screen.
struct List {
    picker: Picker,
    offered: Offered,
}

impl List {
    /// Nothing where there is nothing to choose from.
    fn of(title: &str, choices: Vec<Choice>, offered: Offered) -> Option<Self> {
        let is_empty = choices.is_empty();
        (!is_empty).then(|| Self {
            picker: Picker::new(title, choices),
            offered,
        })
    }
}

fn models_offered(models: Vec<OfferedModel>) -> Option<List> {
    let choice = |model: &OfferedModel| {
        let state = match (model.state, &model.reason) {
            (ModelState::Ready, _) => "ready".to_owned(),
            (_, Some(reason)) => clean_line(reason, MAX_LABEL),
            (ModelState::CoolingDown, None) => "cools down".to_owned(),
            (ModelState::Refused, None) => "refused".to_owned(),
            (ModelState::Away, None) => "away".to_owned(),
        };
        Choice {
            label: clean_line(&model.name, MAX_LABEL),
            detail: format!("{} · {state}", clean_line(&model.account, MAX_LABEL)),
            is_enabled: true,
            ..Choice::default()
        }
    };
    let choices = models.iter().map(choice).collect();
    let lines = models.iter().map(|model| format!("/model {}", model.name));
    List::of(
        "Choose the model of this session",
        choices,
        Offered::Lines(lines.collect()),
    )
}

fn runners_offered(runners: Vec<Runner>) -> Option<List> {
    let now = SystemClock::new().now();
    let mut choices = Vec::new();
    let mut lines = Vec::new();
    for runner in &runners {
        let state = runners::state(runner, now);
        let isolation = runners::isolation(runner);
        let mut add = |name: String| {
            choices.push(Choice {
                label: clean_line(&name, MAX_LABEL),
                detail: clean_line(&format!("{state} · isolation: {isolation}"), MAX_LABEL),
                mark: Some(if runner.online { '●' } else { '○' }),
                is_enabled: true,
            });
            lines.push(format!("/runner {name}"));
        };
        match runner.sandboxes.len() {
            0 | 1 => add(runner.name.clone()),
            _ => {
                for workspace in &runner.sandboxes {
                    add(runners::with_workspace(&runner.name, Some(&workspace.name)));
                }
            }
        }
    }
    List::of(
        "Choose where this session works",
        choices,
        Offered::Lines(lines),
    )
}

/// The messages of a log to which one can go back, the newest first.
fn messages_offered(events: &[SessionEvent]) -> Option<List> {
    let now = SystemClock::new().now();
    let mut messages: Vec<EarlierMessage> = Vec::new();
    let mut details: Vec<String> = Vec::new();
    for event in events {
        match event.known() {
            Some(Event::InputAccepted {
                turn,
                parts,
                compacts: None,
                ..
            }) => {
                messages.push(EarlierMessage {
                    turn: *turn,
                    text: parts.words().into_owned(),
                    has_changes: false,
                });
                details.push(ago(now.since(event.at)));
            }
            Some(Event::ConversationRewound { turn, .. }) => {
                let kept = messages.iter().position(|message| message.turn == *turn);
                let kept = kept.unwrap_or(messages.len());
                messages.truncate(kept);
                details.truncate(kept);
            }
            Some(Event::CallEnded {
                file: Some(file), ..
            }) if file.changed => {
                messages
                    .iter_mut()
                    .for_each(|message| message.has_changes = true);
            }
            _ => {}
        }
    }
    messages.reverse();
    details.reverse();
    let choices = messages.iter().zip(details).map(|(message, age)| {
        let files = if message.has_changes {
            " · files changed since"
        } else {
            ""
        };
        Choice {
            label: clean_line(message.text.lines().next().unwrap_or_default(), MAX_LABEL),
            detail: format!("{age}{files}"),
            is_enabled: true,
            ..Choice::default()
        }
    });
    let choices = choices.collect();
    List::of(
        "Go back to before a message",
        choices,
        Offered::Messages(messages),
    )
}
