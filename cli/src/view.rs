//! The two ways to show a session: for people, and as JSON lines for programs.

use shared_api::{ServerMessage, Task};
use shared_client::{Attached, ClientError, Followed};
use shared_types::{OperationId, SessionId};

use tokio::time::Instant;

use crate::{
    above::Above,
    pending::Pending,
    render::{Renderer, ToFollow},
    screen::Screen,
    tasks,
};

/// Shows what happens.
#[derive(Debug)]
pub(crate) enum View {
    /// For people.
    Text(Screen, Box<Text>),
    /// The server's messages, one per line; everything else goes to standard error.
    Json(Screen, SessionId),
}

/// The view for people: text, and below it the line with what the client waits for.
#[derive(Debug)]
pub(crate) struct Text {
    renderer: Renderer,
    pending: Pending,
    /// True while a turn is watched.
    is_waiting: bool,
    /// The commands of the person's own that are waited for.
    commands: Option<String>,
    /// There while a person types behind a prompt.
    above: Option<Above>,
    /// The line that is not whole yet and waits to be shown above the prompt.
    unfinished: String,
}

impl Text {
    /// Shows the renderer's text, and then the line with what the client waits for.
    fn print(
        &mut self,
        screen: Screen,
        text: impl FnOnce(&mut Renderer) -> String,
    ) -> anyhow::Result<()> {
        self.renderer.fit(screen.columns());
        let mut text = text(&mut self.renderer);
        if let Some(void) = self.renderer.void() {
            let note = self.take_back(screen, &void)?;
            text.insert_str(0, &note);
        }
        text.push_str(&self.renderer.background(Instant::now()));
        let Some(columns) = screen.live_columns() else {
            return self.write(screen, &text);
        };
        let turn = self.is_waiting.then(|| self.renderer.pending());
        let what = self.commands.as_deref().or(turn.as_deref());
        let text = self.pending.write(&text, what, Instant::now(), columns);
        self.write(screen, &text)
    }

    /// Erases the last text. If it cannot be erased, returns a note that it is void.
    fn take_back(&mut self, screen: Screen, void: &str) -> anyhow::Result<String> {
        if self.above.is_none()
            && let (Some(columns), Some(rows)) = (screen.live_columns(), screen.live_rows())
            && let Some(gone) = self.pending.take_back(void, columns, rows)
        {
            screen.print(&gone)?;
            return Ok(String::new());
        }
        let line_end = if void.ends_with('\n') { "" } else { "\n" };
        let note = self
            .renderer
            .aside("what the model said last is void: it broke off");
        Ok(format!("{line_end}{note}"))
    }

    /// Writes to the screen; above a prompt only whole lines.
    fn write(&mut self, screen: Screen, text: &str) -> anyhow::Result<()> {
        let Some(above) = &self.above else {
            return screen.print(text);
        };
        self.unfinished.push_str(text);
        if let Some(end) = self.unfinished.rfind('\n') {
            let rest = self.unfinished.split_off(end + 1);
            above.show(std::mem::replace(&mut self.unfinished, rest));
        }
        Ok(())
    }
}

impl View {
    pub(crate) fn new(screen: Screen, session: SessionId, json: bool) -> Self {
        match json {
            true => Self::Json(screen, session),
            false => {
                let text = Text {
                    renderer: match screen.columns() {
                        Some(_) => Renderer::new(screen.style()),
                        None => Renderer::new(screen.style()).hold_back(),
                    },
                    pending: Pending::new(screen.style(), Instant::now()),
                    is_waiting: false,
                    commands: None,
                    above: None,
                    unfinished: String::new(),
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

    /// These commands of the person's own are waited for from now on, or none any more.
    pub(crate) fn wait_for(&mut self, commands: Option<String>) -> anyhow::Result<()> {
        if let Self::Text(_, text) = self {
            text.commands = commands;
        }
        self.tick()
    }

    /// Shows text that is harmless, of a command of the person's own.
    pub(crate) fn beside(&mut self, shown: &str) -> anyhow::Result<()> {
        match self {
            Self::Text(_, text) => text.renderer.beside(shown),
            Self::Json(screen, _) => screen.note(shown.trim_end()),
        }
        self.tick()
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

    /// Shows news of a task.
    pub(crate) fn task(
        &mut self,
        operation: OperationId,
        item: &Result<Attached, ClientError>,
    ) -> anyhow::Result<()> {
        let Self::Text(screen, text) = self else {
            return Ok(());
        };
        text.renderer.task(operation, item, Instant::now());
        text.print(*screen, |_| String::new())
    }

    /// Names the tasks that run when the person comes. Their output is shown from now on.
    pub(crate) fn runs(&mut self, tasks: &[Task]) -> anyhow::Result<()> {
        let Self::Text(screen, text) = self else {
            return Ok(());
        };
        for task in tasks.iter().filter(|task| task.ended.is_none()) {
            let command = tasks::command(task);
            text.print(*screen, |renderer| {
                renderer.runs(task.number, task.operation, &command)
            })?;
        }
        Ok(())
    }

    /// The tasks whose output can be shown from now on. Programs have other ways to it.
    pub(crate) fn begin_to_follow(&mut self) -> Vec<ToFollow> {
        match self {
            Self::Text(_, text) => text.renderer.begin_to_follow(),
            Self::Json(..) => Vec::new(),
        }
    }

    /// True if its content changes as time passes.
    pub(crate) fn needs_ticks(&self) -> bool {
        match self {
            Self::Text(_, text) => text.is_waiting || text.renderer.is_holding(),
            Self::Json(..) => false,
        }
    }

    /// Begins a prompt: from now on text is shown above it.
    pub(crate) fn prompt_begins(&mut self, above: Option<Above>) {
        if let Self::Text(_, text) = self {
            text.above = above;
        }
    }

    /// Waits until there is room above the prompt. JSON is not shown while a person types.
    pub(crate) async fn room(&self) {
        match self {
            Self::Text(_, text) => {
                if let Some(above) = &text.above {
                    above.room().await;
                }
            }
            Self::Json(..) => std::future::pending().await,
        }
    }

    /// The prompt has ended.
    pub(crate) async fn prompt_ended(&mut self) -> anyhow::Result<Option<Above>> {
        let Self::Text(screen, text) = self else {
            return Ok(None);
        };
        let above = text.above.take();
        if let Some(above) = &above {
            above.shown().await;
        }
        screen.print(&std::mem::take(&mut text.unfinished))?;
        Ok(above)
    }

    /// Shows the cost of the turn that has just ended. Programs ask for it themselves.
    pub(crate) fn cost(&mut self, line: &str) -> anyhow::Result<()> {
        match self {
            Self::Text(screen, text) => text.print(*screen, |renderer| renderer.aside(line)),
            Self::Json(..) => Ok(()),
        }
    }

    /// True if it is for people.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Text(..))
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

    /// Shows a text of whole lines that is not part of the session.
    pub(crate) fn block(&mut self, text: &str) -> anyhow::Result<()> {
        match self {
            Self::Text(screen, shown) => shown.print(*screen, |_| text.to_owned()),
            Self::Json(screen, _) => {
                screen.note(text.trim_end());
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
