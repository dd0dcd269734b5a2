//! The way of the arrow keys through the history. The draft, and messages that were changed on the way, are kept
//! until the box is emptied.

use super::history::History;
use std::collections::BTreeMap;

/// Most changed messages that are kept besides the draft.
const MAX_CHANGED: usize = 16;

/// A text and its cursor.
pub(super) type Kept = (String, usize);

/// The place in the history that the box shows.
#[derive(Debug, Default)]
pub(super) struct Browse {
    /// The message that is shown; `None` for the draft.
    at: Option<usize>,
    draft: Option<Kept>,
    changed: BTreeMap<usize, Kept>,
}

impl Browse {
    /// The message before the one that is shown, which is `now`. `None` if there is none.
    pub(super) fn older(&mut self, now: Kept, history: &mut History) -> Option<Kept> {
        self.refresh(history);
        let at = self.at.unwrap_or(history.len()).checked_sub(1)?;
        self.keep(now, history);
        self.at = Some(at);
        self.shown(at, history)
    }

    /// Takes up messages of other terminals, unless the places of messages matter already.
    pub(super) fn refresh(&self, history: &mut History) {
        if self.at.is_none() && self.changed.is_empty() {
            history.refresh();
        }
    }

    /// The message after the one that is shown, or the draft. `None` if the draft is shown.
    pub(super) fn newer(&mut self, now: Kept, history: &History) -> Option<Kept> {
        let at = self.at? + 1;
        self.keep(now, history);
        if at < history.len() {
            self.at = Some(at);
            return self.shown(at, history);
        }
        self.at = None;
        self.draft.take()
    }

    fn keep(&mut self, now: Kept, history: &History) {
        match self.at {
            None => self.draft = Some(now),
            Some(at) if history.entry(at) == Some(&now.0) => {}
            Some(at) if self.changed.len() < MAX_CHANGED || self.changed.contains_key(&at) => {
                self.changed.insert(at, now);
            }
            Some(_) => {}
        }
    }

    fn shown(&self, at: usize, history: &History) -> Option<Kept> {
        if let Some(changed) = self.changed.get(&at) {
            return Some(changed.clone());
        }
        let text = history.entry(at)?;
        Some((text.to_owned(), text.len()))
    }
}
