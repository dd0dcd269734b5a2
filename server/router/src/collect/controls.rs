//! Requests that readers pass on to their operation: the handle, and the task's receiving end.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use shared_sandbox::{Control, Controls, Input, Operation, OutputStream};
use shared_types::{Refusal, RefusalCode};
use tokio::sync::{mpsc, oneshot, watch};

/// Pieces of input that wait for room; a caller with one more waits itself.
const INPUTS: usize = 1;

/// Controls of the process that wait for the operation's task.
const CONTROLS: usize = 4;

/// Speaks to the task that follows one operation.
pub(super) struct RemoteControls {
    inputs: mpsc::Sender<(Input, ReplySender<u64>)>,
    controls: mpsc::Sender<(Control, ReplySender<()>)>,
    /// For stdout and stderr; only the latest counts, so no caller waits.
    commits: watch::Sender<[u64; 2]>,
    /// The request, under its owner's newest epoch; none if it is not known here.
    asked: watch::Sender<RequestedOperation>,
}

pub(super) type RequestedOperation = Option<Arc<Operation>>;

/// The task's end.
pub(super) struct ControlRequests {
    pub(super) inputs: mpsc::Receiver<(Input, ReplySender<u64>)>,
    pub(super) controls: mpsc::Receiver<(Control, ReplySender<()>)>,
    pub(super) commits: watch::Receiver<[u64; 2]>,
    pub(super) asked: watch::Receiver<RequestedOperation>,
}

pub(super) type ReplySender<T> = oneshot::Sender<Result<T, Refusal>>;

impl RemoteControls {
    pub(super) fn pair(asked: RequestedOperation) -> (Self, ControlRequests) {
        let (inputs, inputs_waiting) = mpsc::channel(INPUTS);
        let (controls, controls_waiting) = mpsc::channel(CONTROLS);
        let (commits, committed) = watch::channel([0, 0]);
        let (asked, asking) = watch::channel(asked);
        let handle = Self {
            inputs,
            controls,
            commits,
            asked,
        };
        let wishes = ControlRequests {
            inputs: inputs_waiting,
            controls: controls_waiting,
            commits: committed,
            asked: asking,
        };
        (handle, wishes)
    }

    /// Records that a reader asks for the operation. Returns true if no newer epoch of its owner
    /// asked before.
    pub(super) fn ask(&self, operation: Arc<Operation>) -> bool {
        let mut is_newest = true;
        self.asked.send_if_modified(|asked| {
            let before = asked.as_ref().map(|asked| asked.epoch);
            is_newest = before.is_none_or(|before| before <= operation.epoch);
            let is_new = before.is_none_or(|before| before < operation.epoch);
            if is_new {
                *asked = Some(operation);
            }
            is_new
        });
        is_newest
    }
}

#[async_trait]
impl Controls for RemoteControls {
    async fn input(&self, input: Input) -> Result<u64, Refusal> {
        let (answer, answered) = oneshot::channel();
        let sent = self.inputs.send((input, answer)).await;
        sent.map_err(|_| over())?;
        answered.await.map_err(|_| over())?
    }

    async fn control(&self, control: Control) -> Result<(), Refusal> {
        let (answer, answered) = oneshot::channel();
        let sent = self.controls.send((control, answer)).await;
        sent.map_err(|_| over())?;
        answered.await.map_err(|_| over())?
    }

    async fn commit(&self, stream: OutputStream, up_to: u64) {
        self.commits.send_if_modified(|committed| {
            let committed = &mut committed[stream as usize];
            let more = up_to > *committed;
            if more {
                *committed = up_to;
            }
            more
        });
    }
}

impl fmt::Debug for RemoteControls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteControls").finish_non_exhaustive()
    }
}

fn over() -> Refusal {
    Refusal::new(
        RefusalCode::NotFound,
        "the operation has ended, or another reader has taken it over",
    )
}
