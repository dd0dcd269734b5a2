//! The two ways to show a session: for people, and as JSON lines for programs.

use shared_api::ServerMessage;
use shared_client::Followed;
use shared_types::SessionId;

use tokio::time::Instant;

use crate::{pending::Pending, render::Renderer, screen::Screen};

/// Shows what happens.
#[derive(Debug)]
pub(crate) enum View {
    /// For people.
    Text(Screen, Box<Text>),
    /// The server's messages, one per line; everything else goes to standard error.
    Json(Screen, SessionId),
}

/// What people see: text, and below it what is waited for.
#[derive(Debug)]
pub(crate) struct Text {
    renderer: Renderer,
    pending: Pending,
    /// Whether a turn is being watched.
    is_waiting: bool,
}

impl Text {
    /// Shows what the renderer says, and what is waited for then.
    fn print(
        &mut self,
        screen: Screen,
        text: impl FnOnce(&mut Renderer) -> String,
    ) -> anyhow::Result<()> {
        self.renderer.fit(screen.columns());
        let text = text(&mut self.renderer);
        let Some(columns) = screen.live_columns() else {
            return screen.print(&text);
        };
        let what = self.is_waiting.then(|| self.renderer.pending());
        let what = what.as_deref();
        screen.print(&self.pending.write(&text, what, Instant::now(), columns))
    }
}

impl View {
    pub(crate) fn new(screen: Screen, session: SessionId, json: bool) -> Self {
        match json {
            true => Self::Json(screen, session),
            false => {
                let text = Text {
                    renderer: Renderer::new(screen.style()),
                    pending: Pending::new(screen.style(), Instant::now()),
                    is_waiting: false,
                };
                Self::Text(screen, Box::new(text))
            }
        }
    }

    pub(crate) fn typed_here(&mut self, client_id: &str, is_on_screen: bool) {
        if let Self::Text(_, text) = self {
            text.renderer.typed_here(client_id, is_on_screen);
        }
    }

    /// A turn is watched from now on, or no more: only then something is waited for.
    pub(crate) fn wait(&mut self, is_waiting: bool) -> anyhow::Result<()> {
        match self {
            Self::Text(screen, text) => {
                text.is_waiting = is_waiting;
                text.print(*screen, |_| String::new())
            }
            Self::Json(..) => Ok(()),
        }
    }

    /// Time has passed, or the terminal has another width.
    pub(crate) fn tick(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Text(screen, text) => text.print(*screen, |_| String::new()),
            Self::Json(..) => Ok(()),
        }
    }

    pub(crate) fn show(&mut self, item: &Followed) -> anyhow::Result<()> {
        match self {
            Self::Text(screen, text) => text.print(*screen, |renderer| renderer.item(item)),
            Self::Json(screen, session) => match message(*session, item) {
                Ok(message) => screen.json(&message),
                Err(note) => {
                    note.into_iter().for_each(|note| screen.note(&note));
                    Ok(())
                }
            },
        }
    }

    pub(crate) fn stopping(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Text(screen, text) => text.print(*screen, Renderer::stopping),
            Self::Json(screen, _) => {
                screen.note("stopping…");
                Ok(())
            }
        }
    }

    /// Says something that is not part of the session.
    pub(crate) fn aside(&mut self, text: &str) -> anyhow::Result<()> {
        match self {
            Self::Text(screen, shown) => shown.print(*screen, |renderer| renderer.aside(text)),
            Self::Json(screen, _) => {
                screen.note(text);
                Ok(())
            }
        }
    }
}

/// The message that stands for an item, or what to say beside the output.
fn message(session: SessionId, item: &Followed) -> Result<ServerMessage, Option<String>> {
    match item {
        Followed::Event(event) => Ok(ServerMessage::Event {
            session,
            event: event.clone(),
        }),
        Followed::Live(live) => Ok(ServerMessage::Live {
            session,
            live: live.clone(),
        }),
        Followed::CaughtUp { .. } => Err(None),
        Followed::Lost { reason } => {
            Err(Some(format!("connection lost, reconnecting… ({reason})")))
        }
        Followed::Recovered => Err(Some("connected again".to_owned())),
    }
}
