//! A session on a terminal as a conversation has shown it: each line once it is final.

use cli_screen::{
    paint::flow::Flow,
    surface::{Colours, written},
    transcript::{Transcript, item::Note},
};
use shared_types::SessionEvent;

use crate::screen::Screen;

/// The lines of a session, written as they become final.
#[derive(Debug)]
pub(crate) struct Painted {
    screen: Screen,
    columns: usize,
    transcript: Transcript,
    flow: Flow,
}

impl Painted {
    /// Lines for a terminal; `None` where standard output is none, or one that cannot move its cursor.
    pub(crate) fn on(screen: Screen) -> Option<Self> {
        Some(Self {
            screen,
            columns: screen.live_columns()?.max(1),
            transcript: Transcript::new(),
            flow: Flow::new(),
        })
    }

    /// Takes an event.
    ///
    /// # Errors
    /// Fails if the terminal is gone.
    pub(crate) fn event(&mut self, event: &SessionEvent) -> anyhow::Result<()> {
        self.transcript.event(event);
        self.write()
    }

    /// Takes words that are not part of the session.
    ///
    /// # Errors
    /// Fails if the terminal is gone.
    pub(crate) fn note(&mut self, words: &str) -> anyhow::Result<()> {
        self.transcript.note(Note::quiet(words));
        self.write()
    }

    /// Writes what may still change as well.
    ///
    /// # Errors
    /// Fails if the terminal is gone.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        let step = self.flow.advance(&self.transcript, self.columns);
        self.lines(step.printed.iter().chain(&step.live))
    }

    fn write(&mut self) -> anyhow::Result<()> {
        let step = self.flow.advance(&self.transcript, self.columns);
        self.transcript.printed(self.flow.next());
        self.lines(step.printed.iter())
    }

    fn lines<'a>(
        &self,
        lines: impl Iterator<Item = &'a ratatui_core::text::Line<'static>>,
    ) -> anyhow::Result<()> {
        let colours = match self.screen.style().has_colours() {
            true => Colours::Full,
            false => Colours::None,
        };
        let text: String = lines.map(|line| written(line, colours) + "\n").collect();
        match text.is_empty() {
            true => Ok(()),
            false => self.screen.print(&text),
        }
    }
}
