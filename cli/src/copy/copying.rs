//! The operations of one copy: each is performed to its end, begun again where its runner was away or it
//! was lost, and stopped with the copy.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, bail};
use shared_api::{OperationEnd, StartOperation, StreamName};
use shared_client::{Attached, Client, ClientError, Controls};
use shared_types::{FileDigest, OperationId};
use tokio::{task::JoinSet, time::timeout};

use super::Progress;
use crate::{exit::Exit, patience::lost};

/// Operations of one copy that are under way at the same time.
pub(super) const AT_ONCE: usize = 4;

/// Attempts for an operation that was refused or lost.
const ATTEMPTS: u32 = 4;

/// The longest wait for stopping all operations.
const STOPS_WITHIN: Duration = Duration::from_secs(5);

/// The bytes that are taken between two reports to the server.
const TOLD_EVERY: u64 = 1024 * 1024;

/// One copy. Cheap to clone.
#[derive(Clone)]
pub(super) struct Copying(Arc<Shared>);

struct Shared {
    client: Client,
    runner: String,
    preserves: bool,
    state: Mutex<State>,
}

struct State {
    progress: Progress,
    running: BTreeSet<OperationId>,
    /// True once the runner was reached: after that, the copy waits for it.
    reached: bool,
    /// True while a lost connection, or an unreachable runner, is reported.
    is_cut: bool,
}

/// The data of an operation: its input, its output, or neither.
pub(super) trait Data: Send {
    /// It begins, or begins again.
    fn begin(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Takes output, and returns its whole size so far.
    fn receive(&mut self, _data: &[u8]) -> anyhow::Result<u64> {
        bail!("the operation writes something")
    }

    /// So much of the input was taken.
    fn taken(&mut self, _offset: u64) {}

    /// The input is wanted from here on.
    fn go_to(&mut self, _offset: u64) -> anyhow::Result<()> {
        Ok(())
    }

    /// Hands over the input; ends only where it cannot be read. Safe to abandon while it waits.
    fn send(
        &mut self,
        _controls: &Controls,
    ) -> impl Future<Output = anyhow::Result<Infallible>> + Send {
        std::future::pending()
    }
}

/// Of an operation without input and output.
pub(super) struct Nothing;

impl Data for Nothing {}

impl Copying {
    pub(super) fn new(client: Client, runner: String, progress: Progress, preserves: bool) -> Self {
        Self(Arc::new(Shared {
            client,
            runner,
            preserves,
            state: Mutex::new(State {
                progress,
                running: BTreeSet::new(),
                reached: false,
                is_cut: false,
            }),
        }))
    }

    /// True where files are to keep their modification times and permissions.
    pub(super) fn preserves(&self) -> bool {
        self.0.preserves
    }

    /// The place on the runner, as the command line names it.
    pub(super) fn place(&self, path: &str) -> String {
        format!("{}:{path}", self.0.runner)
    }

    pub(super) fn progress<T>(&self, change: impl FnOnce(&mut Progress) -> T) -> T {
        change(&mut self.state().progress)
    }

    /// Performs an operation.
    ///
    /// # Errors
    /// Fails when the operation has no end, or when data cannot be read or written here.
    pub(super) async fn perform(
        &self,
        request: StartOperation,
        data: &mut impl Data,
    ) -> anyhow::Result<OperationEnd> {
        let mut failures = 0;
        loop {
            data.begin()?;
            let mut running = Running(self, None);
            let performed = self.once(request.clone(), data, &mut running).await;
            if let Some(id) = running.1 {
                self.stop([id].into()).await;
            }
            let again = match &performed {
                Ok(OperationEnd::Lost { .. } | OperationEnd::Refused { .. }) => {
                    self.state().reached && failures + 1 < ATTEMPTS
                }
                Ok(_) => false,
                Err(error) => self.is_server_away(error) || self.is_away(error).await,
            };
            if !again {
                return performed;
            }
            failures += 1;
            let last = match performed {
                Err(error) => error.downcast::<ClientError>()?,
                Ok(end) => {
                    ClientError::Refused(shared_api::Problem::new("refused", 503, end.words()))
                }
            };
            self.0.client.wait_again(failures, last).await?;
        }
    }

    async fn once(
        &self,
        request: StartOperation,
        data: &mut impl Data,
        running: &mut Running<'_>,
    ) -> anyhow::Result<OperationEnd> {
        let request = StartOperation {
            runner: Some(self.0.runner.clone()),
            ..request
        };
        let (mut attach, controls) = self.0.client.start(request);
        let mut told = 0;
        loop {
            let item = tokio::select! {
                item = attach.next() => item,
                sent = data.send(&controls) => match sent? {},
            };
            match item.context("the operation ended without a word")?? {
                Attached::Operation(operation) => running.is(operation.id),
                Attached::Output {
                    stream: StreamName::Stdout,
                    data: piece,
                    ..
                } => {
                    let have = data.receive(&piece)?;
                    if have - told >= TOLD_EVERY {
                        told = have;
                        controls.stored(told);
                    }
                }
                Attached::InputTaken { offset } => data.taken(offset),
                Attached::InputWanted { from } => data.go_to(from)?,
                Attached::Unreachable { .. } => {
                    self.cut("the runner cannot be reached; waiting for it")
                }
                Attached::Reachable => self.back("the runner is back"),
                Attached::Lost { reason, is_refused } => {
                    self.cut(&lost(is_refused.then_some(&*reason)));
                }
                Attached::Recovered => self.back("connected again"),
                Attached::Problem(problem) => self.note(&problem.detail),
                // Read content is stored nowhere else. If both the runner and the server are cut off, the bytes on the
                // way are lost, and the file is read again.
                Attached::Gap { from, .. } => {
                    self.state().reached = true;
                    let words = format!("the file is not kept from byte {from} on");
                    return Ok(OperationEnd::Lost { words });
                }
                Attached::Output { .. } => {}
                Attached::Ended(operation) => {
                    running.over();
                    if matches!(operation.end, Some(OperationEnd::Done { .. })) {
                        self.state().reached = true;
                    }
                    return operation.end.context("the operation ended without a word");
                }
            }
        }
    }

    /// True if the server never received the request. If it may have received it, the connection that follows the
    /// operation has already waited, and has given up.
    fn is_server_away(&self, error: &anyhow::Error) -> bool {
        let error = error.downcast_ref();
        let is_away = matches!(error, Some(ClientError::Unreachable { is_sent: false, .. }));
        if let Some(error) = error.filter(|_| is_away) {
            self.cut(&format!("{error}; trying again"));
        }
        is_away
    }

    /// True if this failed because a runner that was reached before is offline.
    async fn is_away(&self, error: &anyhow::Error) -> bool {
        let Some(ClientError::Refused(problem)) = error.downcast_ref() else {
            return false;
        };
        if problem.status != 409 || !self.state().reached {
            return false;
        }
        let runner = &self.0.runner;
        let is_it = |one: &shared_api::Runner| one.name == *runner || one.id.to_string() == *runner;
        let is_away = match self.0.client.runners().await {
            Ok(runners) => runners
                .iter()
                .any(|one| is_it(one) && !one.online && !one.locked),
            Err(error) => error.is_passing(),
        };
        if is_away {
            self.cut("the runner cannot be reached; waiting for it");
        }
        is_away
    }

    /// Shows a note; the progress continues below it.
    pub(super) fn note(&self, text: &str) {
        self.state().progress.note(text);
    }

    /// Says once that something is cut off, however many operations notice it.
    fn cut(&self, text: &str) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.is_cut, true) {
            state.progress.note(text);
        }
    }

    fn back(&self, text: &str) {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_cut, false) {
            state.progress.note(text);
        }
    }

    /// Something is not copied, and the rest is.
    pub(super) fn failed(&self, path: &str, why: &str) {
        self.state().progress.failed(path, why);
    }

    /// All that could be copied is.
    pub(super) fn finish(&self) -> Exit {
        match self.state().progress.finish() {
            true => Exit::Done,
            false => Exit::Failed,
        }
    }

    /// Stops all running operations.
    pub(super) async fn stop_all(&self) {
        let running = std::mem::take(&mut self.state().running);
        self.stop(running).await;
    }

    async fn stop(&self, running: BTreeSet<OperationId>) {
        let mut stopping = JoinSet::new();
        for id in running {
            let client = self.0.client.clone();
            // The earlier failure says more than a failure to stop.
            stopping.spawn(async move { client.cancel_operation(id).await.map(drop) });
        }
        let all = async { while stopping.join_next().await.is_some() {} };
        let _ = timeout(STOPS_WITHIN, all).await;
    }

    /// Locks the state. No code under the lock panics.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running operation. It is stopped with the copy unless it is over.
struct Running<'a>(&'a Copying, Option<OperationId>);

impl Running<'_> {
    fn is(&mut self, id: OperationId) {
        self.1 = Some(id);
        self.0.state().running.insert(id);
        self.0.back("connected again");
    }

    fn over(&mut self) {
        if let Some(id) = self.1.take() {
            self.0.state().running.remove(&id);
        }
    }
}

/// True if the rest of the copy would fail as well.
pub(super) fn is_fatal(error: &anyhow::Error) -> bool {
    if let Some(error) = error.downcast_ref::<ClientError>() {
        return match error {
            ClientError::Refused(problem) => problem.status != 422 && problem.status != 404,
            _ => true,
        };
    }
    let io = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::StorageFull)
}

/// Compares the bytes of a transfer's end with those here.
///
/// # Errors
/// Fails when the transfer failed, or when size or digest differ.
pub(super) fn check(end: &OperationEnd, ours: FileDigest, our_bytes: u64) -> anyhow::Result<()> {
    let (bytes, digest) = match end {
        OperationEnd::Done { bytes, digest, .. } => (bytes, digest),
        end => bail!("{}", end.words()),
    };
    if bytes.is_some_and(|bytes| bytes != our_bytes) || digest.is_some_and(|digest| digest != ours)
    {
        bail!(
            "the two files differ: {our_bytes} bytes with {ours} here, {} with {} on the runner; copy it again",
            bytes.map_or("unknown".to_owned(), |bytes| bytes.to_string()),
            digest.map_or("unknown".to_owned(), |digest| digest.to_string()),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use shared_types::DigestAlgorithm;

    use super::*;

    #[test]
    fn a_file_that_is_another_one_on_the_runner_is_no_copy() {
        let digest = DigestAlgorithm::Blake3.of(b"here");
        let done = |bytes, digest| OperationEnd::Done {
            words: String::new(),
            bytes: Some(bytes),
            digest: Some(digest),
            entry: None,
            listing: None,
            skipped: Vec::new(),
        };
        assert!(check(&done(4, digest), digest, 4).is_ok());
        assert!(check(&done(5, digest), digest, 4).is_err());
        let other = done(4, DigestAlgorithm::Blake3.of(b"other"));
        let other = check(&other, digest, 4).expect_err("it differs");
        assert!(
            other.to_string().contains("the two files differ"),
            "{other}"
        );
    }
}
