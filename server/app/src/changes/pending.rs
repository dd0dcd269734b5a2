//! The lists of which one client is to hear: a set, and the moment at which it is due.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use server_records::Pace;
use shared_types::{SessionId, Topic};
use tokio::time::Instant;

/// The least time between two hints to a client.
pub(super) const EVERY: Duration = Duration::from_millis(250);

/// The least time between two hints about a list of which only a figure, or a time of last use, has changed.
pub(super) const FIGURES_EVERY: Duration = Duration::from_secs(5);

/// The most sessions that a hint names.
const SESSIONS_NAMED: usize = 16;

/// A hint that lists are different.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeHint {
    /// The lists, each once.
    pub topics: Vec<Topic>,
    /// The sessions to which it is confined, as far as it is about sessions and their questions; `None` for any.
    pub sessions: Option<Vec<SessionId>>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Pending {
    lists: BTreeMap<Topic, ChangedList>,
    /// When each list was told last; absent before its first time.
    told: BTreeMap<Topic, Instant>,
    /// From then on a hint may be told.
    free_at: Instant,
    /// True before the first hint, which is told also if there are no lists.
    is_first: bool,
}

#[derive(Debug)]
struct ChangedList {
    pace: Pace,
    /// `None` for any.
    sessions: Option<BTreeSet<SessionId>>,
}

impl Pending {
    /// All of these lists, to be told at once.
    pub(super) fn of(topics: &BTreeSet<Topic>, now: Instant) -> Self {
        let mut pending = Self {
            lists: BTreeMap::new(),
            told: BTreeMap::new(),
            free_at: now,
            is_first: true,
        };
        for topic in topics {
            pending.add(*topic, Pace::Prompt, None);
        }
        pending
    }

    /// Another change of this list, of one session or of any.
    pub(super) fn add(&mut self, topic: Topic, pace: Pace, session: Option<SessionId>) {
        let list = self.lists.entry(topic).or_insert_with(|| ChangedList {
            pace,
            sessions: Some(BTreeSet::new()),
        });
        list.pace = list.pace.min(pace);
        match (&mut list.sessions, session) {
            (Some(sessions), Some(session)) if sessions.len() < SESSIONS_NAMED => {
                sessions.insert(session);
            }
            (sessions, _) => *sessions = None,
        }
    }

    /// The hint that is due.
    ///
    /// # Errors
    /// The moment at which one will be due, if there is anything to tell.
    pub(super) fn take(&mut self, now: Instant) -> Result<ChangeHint, Option<Instant>> {
        let due = self
            .lists
            .iter()
            .map(|(topic, list)| self.due(*topic, list));
        match due.min() {
            Some(due) if due > now => return Err(Some(due)),
            None if !self.is_first => return Err(None),
            _ => {}
        }
        self.is_first = false;
        let all = std::mem::take(&mut self.lists);
        let (now_due, later) = all
            .into_iter()
            .partition(|(topic, list)| self.due(*topic, list) <= now);
        self.lists = later;
        self.free_at = now + EVERY;
        Ok(self.told(now_due, now))
    }

    fn due(&self, topic: Topic, list: &ChangedList) -> Instant {
        match (list.pace, self.told.get(&topic)) {
            (Pace::Slow, Some(told)) => self.free_at.max(*told + FIGURES_EVERY),
            _ => self.free_at,
        }
    }

    fn told(&mut self, lists: BTreeMap<Topic, ChangedList>, now: Instant) -> ChangeHint {
        let topics: Vec<_> = lists.keys().copied().collect();
        self.told.extend(topics.iter().map(|topic| (*topic, now)));
        let mut named = None::<BTreeSet<_>>;
        for (topic, list) in lists {
            match (topic, list.sessions) {
                (Topic::Sessions | Topic::Approvals, Some(sessions)) => {
                    named.get_or_insert_default().extend(sessions);
                }
                (Topic::Sessions | Topic::Approvals, None) => {
                    named = None;
                    break;
                }
                _ => {}
            }
        }
        ChangeHint {
            topics,
            sessions: named.map(|sessions| sessions.into_iter().collect()),
        }
    }
}
