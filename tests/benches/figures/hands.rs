//! What the engine would hold: the sandbox behind the link, and the rows of its intents.

use std::sync::Arc;

use server_records::Operations;
use server_router::SandboxRouter;
use shared_sandbox::{
    Command, Exec, ExitStatus, OperationEvent, Outcome, OutputStream, Request, Retention, Running,
    Sandbox as _,
};
use shared_types::OperationId;
use tests::door::{Door, Rows, operation};

/// Gives operations to the runner behind a door.
#[derive(Clone)]
pub(crate) struct Hands {
    sandbox: SandboxRouter,
    rows: Arc<Rows>,
}

impl Hands {
    pub(crate) fn of(door: &Door) -> Self {
        Self {
            sandbox: door.sandbox.clone(),
            rows: Arc::clone(&door.rows),
        }
    }

    /// Runs a command to its end; returns its id and how many bytes of its output arrived.
    pub(crate) async fn run(&self, words: &[&str]) -> (OperationId, u64) {
        let (id, mut running) = self.start(Request::Exec(exec(words))).await;
        let mut bytes = 0;
        let each = |event| {
            if let OperationEvent::Output { data, .. } = event {
                bytes += data.len() as u64;
            }
        };
        let outcome = self.follow(id, &mut running, each).await;
        assert_succeeded(&outcome);
        (id, bytes)
    }

    /// Runs a command whose output is kept for its reader alone, and confirms all that arrives;
    /// returns its id and how many bytes that was.
    ///
    /// # Panics
    /// If a byte of it is missing.
    pub(crate) async fn drain(&self, words: &[&str]) -> (OperationId, u64) {
        let request = Request::Exec(Exec {
            retention: Retention::None,
            ..exec(words)
        });
        let (id, mut running) = self.start(request).await;
        let mut read = 0;
        let outcome = loop {
            match running.events.recv().await.expect("an end") {
                OperationEvent::Output {
                    stream: OutputStream::Stdout,
                    offset,
                    data,
                } => {
                    assert_eq!(offset, read, "nothing is lost or repeated");
                    read += data.len() as u64;
                    running.controls.commit(OutputStream::Stdout, read).await;
                }
                OperationEvent::Gap { from, to, .. } => panic!("{from}..{to} is missing"),
                OperationEvent::Ended(outcome) => break outcome,
                _ => {}
            }
        };
        self.settle(id, &outcome).await;
        assert_succeeded(&outcome);
        (id, read)
    }

    /// Starts an operation.
    pub(crate) async fn start(&self, request: Request) -> (OperationId, Running) {
        let operation = operation(request);
        let id = operation.id;
        let running = self.sandbox.start(operation).await;
        (id, running.expect("it is taken"))
    }

    /// Shows every event before the end, and stores the end.
    pub(crate) async fn follow(
        &self,
        id: OperationId,
        running: &mut Running,
        mut each: impl FnMut(OperationEvent),
    ) -> Outcome {
        loop {
            match running.events.recv().await.expect("an end") {
                OperationEvent::Ended(outcome) => {
                    self.settle(id, &outcome).await;
                    return outcome;
                }
                event => each(event),
            }
        }
    }

    /// What the engine says once the result is stored; nobody waits for it.
    pub(crate) async fn forget(&self, id: OperationId) {
        self.sandbox.forget(id).await;
        self.rows.drop_intent(id);
    }

    async fn settle(&self, id: OperationId, outcome: &Outcome) {
        let stored = Operations::settle(&*self.rows, id, outcome).await;
        stored.expect("it was placed");
    }
}

fn assert_succeeded(outcome: &Outcome) {
    match outcome {
        Outcome::Exited(record) => assert_eq!(record.status, ExitStatus::Code(0)),
        other => panic!("expected an exit, got {other:?}"),
    }
}

fn exec(words: &[&str]) -> Exec {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Exec::new(Command::Argv(words))
}
