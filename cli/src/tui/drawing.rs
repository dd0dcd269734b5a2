//! The terminal of a conversation: what is on it, and how that comes there.

use anyhow::Context as _;
use cli_screen::{
    paint::{
        changes::changes,
        flow::{Flow, pages},
        palette,
        question::asked,
        wrap::{untabbed, wrap},
    },
    surface::{
        Bottom, Colours, Guardian, Keys, Modes, Pager, Size, Surface, Terminal, Wanted, notify,
        stop,
    },
    transcript::{
        Transcript,
        item::{Call, Kind, Note},
    },
};
use ratatui_core::text::Line;
use shared_types::{
    UserId,
    clean::{clean, clean_line},
};
use tokio::time::{Duration, Instant};

use super::{
    KEYS_REST, LOOK_AGAIN_AFTER, Overlay, SECOND, Stop, TerminalFacts, Tui,
    dialog::{self, Answering},
    now,
    status::{BottomView, Middle},
};

/// Longest title of the terminal, in characters.
const MAX_TITLE: usize = 60;

/// Longest words on the agent that asks, in characters.
const MAX_ASKER: usize = 160;

/// The turn that is worth a notification takes at least so long.
const LONG_TURN: Duration = Duration::from_secs(10);

/// The words in an empty box.
const WHILE_IDLE: &str = "Say what you want done · /help lists commands";

/// The words in an empty box during a turn.
const WHILE_WORKING: &str = "Say more: Enter sends it into the turn, Tab after it";

/// The pause of resizes after which what is on the screen has its place.
const RESIZES_REST: Duration = Duration::from_millis(100);

/// The terminal, and the conversation as it is on it.
pub(super) struct Stage {
    pub(super) keys: Keys,
    pub(super) transcript: Transcript,
    /// True once the feed has shown all that had happened before.
    pub(super) is_caught_up: bool,
    /// True while the terminal's window has the keyboard, as far as it tells.
    pub(super) has_focus: bool,
    /// The time of the next frame.
    pub(super) frame_at: Instant,
    /// The time of the last frame.
    drawn_at: Instant,
    terminal: Terminal,
    modes: Modes,
    surface: Surface,
    flow: Flow,
    own: OwnOutput,
    facts: TerminalFacts,
}

/// The output of the person's own commands: the line that is not whole yet.
#[derive(Debug, Default)]
struct OwnOutput {
    open: String,
}

impl Stage {
    pub(super) fn begin(facts: &TerminalFacts) -> anyhow::Result<Self> {
        let terminal = Terminal::open().context("failed to open the terminal")?;
        let keys = Keys::new(&terminal).context("failed to read the terminal")?;
        let wanted = Wanted::for_terminal(facts.term.as_deref().unwrap_or_default());
        // Without a guardian the terminal is restored in all cases but one: the program is killed.
        let guardian = std::env::current_exe()
            .and_then(|program| Guardian::start(&program, &terminal))
            .ok();
        let modes =
            Modes::begin(&terminal, wanted, guardian).context("failed to set the terminal up")?;
        let mut surface = Surface::new(terminal.size(), colours(facts));
        surface.set_reflow(facts.reflow);
        terminal.write(&notify::begin_title("gantry"))?;
        Ok(Self {
            keys,
            transcript: Transcript::new(),
            is_caught_up: false,
            has_focus: true,
            frame_at: Instant::now(),
            drawn_at: Instant::now(),
            terminal,
            modes,
            surface,
            flow: Flow::new(),
            own: OwnOutput::default(),
            facts: facts.clone(),
        })
    }

    fn colours(&self) -> Colours {
        colours(&self.facts)
    }

    pub(super) fn size(&self) -> Size {
        self.surface.size()
    }

    pub(super) fn resize(&mut self, size: Size) {
        if self.drawn_at.elapsed() >= RESIZES_REST {
            // The terminal has reflowed what was drawn, and has finished with it.
            self.surface.settle();
        }
        self.surface.resize(size);
    }

    /// Has a frame drawn at this time at the latest.
    pub(super) fn wants_frame(&mut self, at: Instant) {
        self.frame_at = self.frame_at.min(at);
    }

    /// Another session is shown from now on, below the one before.
    pub(super) fn enter(&mut self, me: UserId) {
        // What has not ended there stays on the screen as it is now.
        let live = self.settle();
        self.surface.print(&live);
        self.transcript = Transcript::new();
        self.transcript.me(me);
        self.flow = Flow::new();
        self.is_caught_up = false;
    }

    /// Prints what the conversation has settled since. Returns what may still change.
    fn settle(&mut self) -> Vec<Line<'static>> {
        let columns = usize::from(self.surface.size().columns).max(1);
        let step = self.flow.advance(&self.transcript, columns);
        self.surface.print(&step.printed);
        self.transcript.printed(self.flow.next());
        step.live
    }

    /// Brings the screen there.
    fn show(&mut self, bottom: &Bottom) -> anyhow::Result<()> {
        let bytes = self.surface.frame(bottom);
        self.drawn_at = Instant::now();
        self.write(&bytes)
    }

    fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        self.terminal
            .write(bytes)
            .context("failed to write to the terminal")
    }

    /// The head of a command of the person.
    pub(super) fn head(&mut self, name: &str) {
        let line = Line::styled(clean_line(name, 200), palette::USER);
        self.transcript.note(Note::lines(vec![line]));
    }

    /// Text of a command of the person, which comes in pieces.
    pub(super) fn own_output(&mut self, text: &str, is_last: bool) {
        self.own.open.push_str(text);
        let whole = match is_last {
            true => self.own.open.len(),
            false => self.own.open.rfind('\n').map_or(0, |end| end + 1),
        };
        let rest = self.own.open.split_off(whole);
        let whole = std::mem::replace(&mut self.own.open, rest);
        if !whole.is_empty() {
            self.block(&whole, false);
        }
    }

    /// Lines beside the conversation, dimmed; with `has_head` the first one stands out.
    pub(super) fn block(&mut self, text: &str, has_head: bool) {
        let text = clean(text);
        let columns = usize::from(self.surface.size().columns).max(1);
        let lines = text.lines().enumerate().flat_map(|(at, line)| {
            let style = match has_head && at == 0 {
                true => palette::BOLD,
                false => palette::DIM,
            };
            wrap(&Line::styled(untabbed(line), style), columns, 0)
        });
        let lines = lines.collect();
        self.transcript.note(Note::lines(lines));
    }

    /// Draws the bottom again, in its place.
    pub(super) fn redraw(&mut self) {
        self.surface.redraw();
    }

    /// The person's editor, if one is named.
    pub(super) fn editor(&self) -> Option<&str> {
        self.facts.editor.as_deref()
    }

    /// Gives the terminal to another program while `other` runs.
    pub(super) fn beside<T>(&mut self, other: impl FnOnce() -> T) -> T {
        // A terminal that is gone is noticed by the next key.
        let _ = self.write_clear();
        self.keys.pause();
        self.modes.suspend();
        let done = other();
        let _ = self.modes.resume();
        self.keys.resume();
        self.surface.reset();
        self.surface.resize(self.terminal.size());
        done
    }

    fn write_clear(&mut self) -> anyhow::Result<()> {
        let bytes = self.surface.clear();
        self.write(&bytes)
    }

    /// Ctrl-Z: stops the program until the shell continues it.
    pub(super) fn suspend(&mut self) -> anyhow::Result<()> {
        self.beside(stop).context("failed to stop the program")
    }

    /// The end of the conversation: the bottom goes, what was said stays.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        let live = self.settle();
        self.surface.print(&live);
        let mut bytes = self.surface.clear();
        bytes.extend(notify::end_title());
        self.write(&bytes)?;
        self.modes.restore();
        Ok(())
    }

    /// Gives the whole screen to a page.
    fn page_begins(&mut self) -> anyhow::Result<()> {
        self.write_clear()?;
        self.modes
            .full_screen(true)
            .context("failed to use the terminal")
    }

    /// Takes the screen back from a page.
    pub(super) fn page_ends(&mut self) -> anyhow::Result<()> {
        self.modes
            .full_screen(false)
            .context("failed to use the terminal")?;
        self.surface.reset();
        self.surface.resize(self.terminal.size());
        Ok(())
    }
}

fn colours(facts: &TerminalFacts) -> Colours {
    match facts.no_color {
        true => Colours::None,
        false => Colours::Full,
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // After a signal, or an error: what was drawn for the person's eyes only goes.
        if self.modes.is_on() {
            let _ = self.end();
        }
    }
}

impl Tui {
    /// Draws the screen as it is now.
    pub(super) fn draw(&mut self) -> anyhow::Result<()> {
        if let Overlay::Page(pager) = &mut self.overlay {
            let bytes = pager.draw(self.stage.terminal.size());
            self.stage.frame_at = Instant::now() + SECOND * 60;
            return self.stage.write(&bytes);
        }
        self.ready_question();
        let live = self.stage.settle();
        let is_working = self.is_working();
        self.composer.set_working(is_working);
        let placeholder = if is_working {
            WHILE_WORKING
        } else {
            WHILE_IDLE
        };
        self.composer.set_placeholder(placeholder.to_owned());
        let size = self.stage.size();
        let waiting = self.waiting();
        let view = BottomView {
            live: &live,
            facts: self.stage.transcript.facts(),
            session: &self.talk.facts,
            waiting: &waiting,
            own: self.own.names().map(|names| match self.is_working() {
                true => names,
                false => format!("{names} · Ctrl-C stops it"),
            }),
            middle: self.middle(usize::from(size.columns)),
            composer: &self.composer,
            hint: self.hint(),
            is_stopping: self.stop != Stop::No,
            now: now(),
        };
        let bottom = match &self.overlay {
            Overlay::List(..) => Bottom::default(),
            Overlay::None | Overlay::Question(_) | Overlay::Page(_) => view.bottom(size),
        };
        let bottom = match &mut self.overlay {
            Overlay::List(picker, _) => picker.draw(size.columns, size.rows.saturating_sub(1)),
            Overlay::None | Overlay::Question(_) | Overlay::Page(_) => bottom,
        };
        self.stage.show(&bottom)?;
        // Only a running clock changes the screen by itself, and a question that is about to take the keys.
        let is_about = matches!(&self.overlay, Overlay::Question(dialog) if !dialog.is_ready);
        if is_about {
            self.stage.frame_at = Instant::now() + KEYS_REST / 4;
            return Ok(());
        }
        // No event tells of the answer to a question of another agent.
        let is_of_agent =
            matches!(&self.overlay, Overlay::Question(dialog) if dialog.agent.is_some());
        let next = match is_working || self.armed.is_some() || is_of_agent {
            true => SECOND,
            false if self.talk.facts.is_away() => LOOK_AGAIN_AFTER,
            false => SECOND * 60,
        };
        self.stage.frame_at = Instant::now() + next;
        Ok(())
    }

    /// Ctrl-O: all that is known of the conversation, unfolded, on a page of its own.
    pub(super) fn show_unfolded(&mut self) -> anyhow::Result<()> {
        let items: Vec<_> = self.stage.transcript.items().cloned().collect();
        let lines = move |columns: u16| pages(&items, usize::from(columns));
        self.show_page(Pager::new("the conversation, unfolded", lines).from_end())
    }

    /// `/diff`: all changes of this session, on a page of their own.
    pub(super) fn show_changes(&mut self) -> anyhow::Result<()> {
        let found = self.stage.transcript.changes().clone();
        if found.is_empty() {
            self.note("no file was written or edited in what is shown of this session");
            return Ok(());
        }
        let lines = move |columns: u16| changes(&found, usize::from(columns));
        self.show_page(Pager::new("changes of this session", lines))
    }

    fn show_page(&mut self, pager: Pager) -> anyhow::Result<()> {
        if let Overlay::Question(dialog) = &self.overlay {
            // It comes back when the person leaves the page.
            self.questions.put_back(dialog.waits());
            if dialog.is_ready {
                self.composer.set_text(&dialog.draft);
            }
        }
        self.stage.page_begins()?;
        let pager = pager.with_colours(self.stage.colours());
        self.overlay = Overlay::Page(Box::new(pager));
        Ok(())
    }

    /// Lets a question take the keys, once the person has seen it and types nothing else.
    fn ready_question(&mut self) {
        let rests = self.key_at.is_none_or(|at| at.elapsed() >= KEYS_REST);
        let Overlay::Question(dialog) = &mut self.overlay else {
            return;
        };
        let shown_at = *dialog.shown_at.get_or_insert_with(Instant::now);
        if !dialog.is_ready && rests && shown_at.elapsed() >= KEYS_REST {
            dialog.is_ready = true;
            dialog.draft = self.composer.take();
        }
    }

    fn middle(&self, columns: usize) -> Middle {
        match &self.overlay {
            Overlay::Question(dialog) => Middle::Question {
                lines: self.lines_of(dialog, columns),
                scrolled: dialog.scrolled,
                keys: dialog::keys(dialog),
                has_box: !dialog.is_ready
                    || matches!(dialog.answering, Answering::Words | Answering::Command),
            },
            Overlay::None | Overlay::List(..) | Overlay::Page(_) => Middle::Box,
        }
    }

    /// The question, below the name of the agent that asks it where that is another one.
    fn lines_of(&self, dialog: &dialog::Dialog, columns: usize) -> Vec<Line<'static>> {
        let waits = self.call_that_waits(dialog);
        let mut lines = Vec::new();
        if let Some(agent) = &dialog.agent {
            let words = format!(
                "the agent {} asks · {}",
                agent.name, dialog.approval.session_title
            );
            let words = clean_line(&words, MAX_ASKER);
            lines.extend(wrap(&Line::styled(words, palette::BOLD), columns, 0));
        }
        lines.extend(asked(&dialog.approval.question, waits, columns));
        lines
    }

    /// The call that waits for the answer: a long question holds only the beginning of its text.
    fn call_that_waits(&self, dialog: &dialog::Dialog) -> Option<&Call> {
        let transcript = &self.stage.transcript;
        let mut asked = transcript.facts().asked.iter();
        let asked = asked.find(|asked| asked.approval == dialog.id())?;
        match &transcript.item(asked.item?)?.kind {
            Kind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// The hint about a key that counts when it is pressed again.
    fn hint(&self) -> Option<String> {
        let armed = self
            .armed
            .filter(|armed| armed.at.elapsed() < super::TWICE_WITHIN)?;
        let words = match armed.key {
            super::ArmedKey::CtrlC if !self.own.is_empty() && !self.is_working() => {
                "Ctrl-C once more leaves the command alone"
            }
            super::ArmedKey::CtrlC if self.is_working() => {
                "Ctrl-C once more leaves; the server stops the turn"
            }
            super::ArmedKey::CtrlC => "Ctrl-C once more or Ctrl-D leaves; the session stays",
            super::ArmedKey::Escape => "Esc once more goes back to an earlier message",
        };
        Some(words.to_owned())
    }

    /// Sets the terminal's title to that of the session.
    pub(super) fn title(&self) {
        let title = clean_line(&self.talk.session.title, MAX_TITLE);
        let title = match title.is_empty() {
            true => "gantry".to_owned(),
            false => format!("{title} · gantry"),
        };
        // A terminal that is gone is noticed by the next frame.
        let _ = self.stage.write(&notify::set_title(&title));
    }

    /// Calls the person: with the bell, and with a notification if the window has no keyboard.
    pub(super) fn notify(&self, words: &str) {
        let since = self.working_since;
        let is_long = since.is_some_and(|since| now().since(since) >= LONG_TURN);
        if self.stage.has_focus && !is_long {
            return;
        }
        let title = clean_line(&self.talk.session.title, MAX_TITLE);
        let mut bytes = notify::BELL.to_vec();
        if !self.stage.has_focus {
            let words = format!("gantry: {words} · {title}");
            bytes.extend(notify::notification(&words, self.stage.facts.is_tmux));
        }
        let _ = self.stage.write(&bytes);
    }
}
