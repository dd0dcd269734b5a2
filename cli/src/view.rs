//! The two ways to show a session: for people, and as JSON lines for programs.

use shared_api::ServerMessage;
use shared_client::Followed;
use shared_types::SessionId;

use crate::{render::Renderer, screen::Screen};

/// Shows what happens.
#[derive(Debug)]
pub(crate) enum View {
    /// For people.
    Text(Screen, Box<Renderer>),
    /// The server's messages, one per line; everything else goes to standard error.
    Json(Screen, SessionId),
}

impl View {
    pub(crate) fn new(screen: Screen, session: SessionId, json: bool) -> Self {
        match json {
            true => Self::Json(screen, session),
            false => Self::Text(screen, Box::new(Renderer::new(screen.style()))),
        }
    }

    pub(crate) fn typed_here(&mut self, client_id: &str, is_on_screen: bool) {
        if let Self::Text(_, renderer) = self {
            renderer.typed_here(client_id, is_on_screen);
        }
    }

    pub(crate) fn show(&mut self, item: &Followed) -> anyhow::Result<()> {
        match self {
            Self::Text(screen, renderer) => screen.print(&renderer.item(item)),
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
            Self::Text(screen, renderer) => screen.print(&renderer.stopping()),
            Self::Json(screen, _) => {
                screen.note("stopping…");
                Ok(())
            }
        }
    }

    /// Says something that is not part of the session.
    pub(crate) fn aside(&mut self, text: &str) -> anyhow::Result<()> {
        match self {
            Self::Text(screen, renderer) => screen.print(&renderer.aside(text)),
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
