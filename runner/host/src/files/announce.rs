//! Tells of a change and waits until it may be made.

use tokio::{runtime::Handle, sync::mpsc, time::sleep};

use shared_types::{Refusal, RefusalCode};

use super::{Allowance, Failure, stopped, too_slow};
use crate::{Change, HostEvent, change::Announced};

/// The channel for announcements of changes. For blocking threads.
#[derive(Debug)]
pub(crate) struct Announcer {
    events: mpsc::Sender<HostEvent>,
    runtime: Handle,
}

impl Announcer {
    /// Needs the context of a tokio runtime with time.
    pub(crate) fn new(events: mpsc::Sender<HostEvent>) -> Self {
        Self {
            events,
            runtime: Handle::current(),
        }
    }

    /// Returns when the change may be made; otherwise nothing may be changed.
    pub(super) fn announce(&self, change: Change, allowance: &Allowance) -> Result<(), Failure> {
        let (announced, answered) = Announced::new(change);
        let answer = async {
            let told = self.events.send(HostEvent::Changing(announced)).await;
            told.ok()?;
            answered.await.ok()
        };
        let mut stopping = allowance.stopping.clone();
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = stopping.wanted() => Err(stopped()),
                answer = answer => match answer {
                    Some(answer) => answer.map(|()| super::step()).map_err(Failure::Refused),
                    None => Err(Failure::Refused(unheard())),
                },
                () = sleep(allowance.left()) => Err(too_slow(allowance.limit)),
            }
        })
    }
}

/// The refusal of a change that was not announced: after a death its result would not be known.
pub(crate) fn unheard() -> Refusal {
    Refusal::new(
        RefusalCode::Fenced,
        "the change could not be written down in advance; nothing was changed",
    )
}
