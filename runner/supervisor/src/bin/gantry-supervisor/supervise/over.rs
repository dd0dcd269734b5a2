//! After a command: another one, or the end of its supervisor.
//!
//! Making files costs the more, the more were removed of late: ext4 gives no inode away again for a
//! minute, and looks at each that it passes over. So a supervisor whose command is forgotten soon
//! serves another one, in the same files.

use std::time::Duration;

use runner_supervisor::{FaultPoint, ToSupervisor};
use rustix::event::{PollFd, PollFlags, poll};

use crate::{
    client::ControlClient,
    clock::{self, timespec},
    faults::Faults,
    prepare::{Prepared, SupervisorHost},
    sys,
};

/// The time that the daemon has to forget a command.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(1);

/// The number of attempts to remove the emptied cgroup: its last process may still be leaving.
const REMOVALS: u32 = 200;

/// Between two of these attempts.
const REMOVE_AFTER: Duration = Duration::from_millis(1);

/// The remains of a supervision.
#[derive(Debug)]
pub(crate) struct EndedSupervision {
    pub(super) prepared: Prepared,
    /// A daemon, if there can be another command.
    pub(super) client: Option<ControlClient>,
}

impl EndedSupervision {
    /// Ready for another command, should the daemon want one; else everything is left behind.
    pub(crate) fn again(
        self,
        host: &SupervisorHost,
        faults: Faults,
    ) -> Option<(Prepared, ControlClient)> {
        let mut prepared = self.prepared;
        if let Some(mut client) = self.client
            && is_asked(&prepared, &mut client)
        {
            let failing = |point: FaultPoint| faults.at(point, Some(&client));
            if prepared.renew(host, failing).is_ok() {
                return Some((prepared, client));
            }
        }
        for _ in 0..REMOVALS {
            // One that stays is removed by a daemon that recovers.
            if prepared.leaf.remove().is_ok() || !prepared.leaf.is_empty() {
                break;
            }
            std::thread::sleep(REMOVE_AFTER);
        }
        None
    }
}

/// Waits a while to be asked. What else the daemon says came too late for the command.
fn is_asked(prepared: &Prepared, client: &mut ControlClient) -> bool {
    let until = clock::monotonic().saturating_add(FORGOTTEN_WITHIN);
    while !client.is_gone() {
        while let Some(frame) = client.next() {
            if matches!(frame.head, ToSupervisor::Again) {
                return true;
            }
        }
        let left = until.saturating_sub(clock::monotonic());
        if left.is_zero() || sys::asked_to_end(&prepared.signals) {
            return false;
        }
        let mut fds = [
            PollFd::new(client.socket(), PollFlags::IN),
            PollFd::new(&prepared.signals, PollFlags::IN),
        ];
        // An interruption is as good as a look.
        let _ = poll(&mut fds, Some(&timespec(left)));
        client.fill();
    }
    false
}
