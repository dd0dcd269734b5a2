//! The doubles: a store in memory, and a runner's end of a link that a test plays by hand.

mod outputs;
mod peers;
mod store;
mod weather;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use proto::{
    PROTOCOL_VERSION,
    v1::{self, runner_frame, server_frame},
};
use shared_sandbox::{
    Consent, Exec, ExitCause, ExitRecord, ExitStatus, Operation, OperationEvent, OperationLimits,
    Outcome, OutputStream, Request, Running, Sandbox as _, StreamEnd,
};
use shared_types::{
    Effect, Epoch, Incarnation, JournalId, OperationId, OperationKey, Owner, ReplicaId, RunnerId,
    SandboxId, SessionId, TenantId, Timestamp, clock::ManualClock, entropy::SeededEntropy,
};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

pub(super) use self::{
    peers::{Peers, Way},
    store::Store,
    weather::Weather,
};
use crate::{
    SandboxRouter,
    links::{LinkEnd, LinkOptions, Links},
};
use server_records::LinkIdentity;

/// How long a test waits for what must come.
const WITHIN: Duration = Duration::from_secs(10);

/// Room for frames on each side of a link: more than any test leaves unread.
pub(super) const FRAMES: usize = 64;

pub(super) const NOW: Timestamp = Timestamp::from_micros(1_789_000_000_000_000);

/// Everything on the server's side.
pub(super) struct World {
    pub(super) store: Arc<Store>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) links: Links,
    pub(super) sandbox: SandboxRouter,
    pub(super) shutdown: CancellationToken,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(LinkOptions::default())
    }

    pub(super) fn with(options: LinkOptions) -> Self {
        Self::on(Arc::new(Store::default()), options)
    }

    /// A server that is started again on the same store: it remembers nothing else.
    pub(super) fn restarted(&self) -> Self {
        Self::on(self.store.clone(), self.links.options().clone())
    }

    /// Another server on the same store.
    pub(super) fn beside(&self, replica: u128) -> Self {
        let store = self.store.at(ReplicaId::from_u128(replica));
        Self::on(Arc::new(store), self.links.options().clone())
    }

    /// On a store whose callers this befalls.
    pub(super) fn under(weather: Arc<dyn Weather>) -> Self {
        Self::on(Arc::new(Store::under(weather)), LinkOptions::default())
    }

    fn on(store: Arc<Store>, options: LinkOptions) -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let shutdown = CancellationToken::new();
        let links = Links::start(
            store.clone(),
            clock.clone(),
            Arc::new(SeededEntropy::new(7)),
            options,
            shutdown.clone(),
        );
        Self {
            sandbox: SandboxRouter::new(
                links.clone(),
                store.clone(),
                store.clone(),
                store.clone(),
                clock.clone(),
            ),
            store,
            clock,
            links,
            shutdown,
        }
    }

    /// One runner, which is linked and chosen.
    pub(super) async fn chosen() -> (Self, Runner, Link) {
        let world = Self::new();
        let runner = Runner::new(1, "one");
        let link = world.link(&runner).await;
        world.store.choose(&runner);
        (world, runner, link)
    }

    /// Starts an operation that the runner accepts; the text is its id on the wire.
    pub(super) async fn begin(&self, link: &mut Link, operation: Operation) -> (Running, String) {
        let started = self.sandbox.start(operation).await;
        let id = link.operation().await.operation;
        link.accept(&id).await;
        (started.expect("it starts"), id)
    }

    /// Waits until nothing is being collected any more.
    pub(super) async fn collects_nothing(&self) {
        eventually(|| self.links.collectors().is_empty()).await;
    }

    /// Links a runner and waits until its link carries operations.
    pub(super) async fn link(&self, runner: &Runner) -> Link {
        let mut link = self.dial(runner, runner.hello());
        let welcome = link.next().await;
        let server_frame::Kind::Welcome(_) = welcome else {
            panic!("expected a welcome, got {welcome:?}");
        };
        let mut presence = self.links.presence(runner.id).await;
        within(presence.until(true)).await;
        link
    }

    /// Sends a first message and waits for nothing.
    pub(super) fn dial(&self, runner: &Runner, hello: v1::Hello) -> Link {
        let (to_server, mut frames) = mpsc::channel(FRAMES);
        let inbound = stream::poll_fn(move |context| frames.poll_recv(context)).boxed();
        let (outbound, from_server) = mpsc::channel(FRAMES);
        let links = self.links.clone();
        let identity = LinkIdentity {
            tenant: TenantId::from_u128(1),
            runner: runner.id,
            name: runner.name.clone(),
        };
        let end =
            tokio::spawn(async move { links.attach(identity, hello, inbound, outbound).await });
        Link {
            to_server,
            from_server,
            end,
            commits: Vec::new(),
        }
    }

    /// The link breaks; returns once the server knows.
    pub(super) async fn lose(&self, runner: &Runner, link: Link) {
        link.hang_up().await;
        let mut presence = self.links.presence(runner.id).await;
        within(presence.until(false)).await;
    }
}

/// An enrolled runner.
#[derive(Clone)]
pub(super) struct Runner {
    pub(super) id: RunnerId,
    pub(super) name: String,
    pub(super) incarnation: Incarnation,
    pub(super) inventory: Vec<(OperationId, bool)>,
}

impl Runner {
    pub(super) fn new(number: u128, name: &str) -> Self {
        Self {
            id: RunnerId::from_u128(number),
            name: name.to_owned(),
            incarnation: Incarnation {
                journal: JournalId::from_u128(number),
                boot: "boot".to_owned(),
            },
            inventory: Vec::new(),
        }
    }

    /// The same runner after its daemon was started again: it remembers nothing.
    pub(super) fn restarted(&self) -> Self {
        let mut runner = self.clone();
        runner.incarnation.journal = JournalId::from_u128(self.id.as_u128() + 1000);
        runner.inventory.clear();
        runner
    }

    /// The same runner after its host was started again: its journal is on disk.
    pub(super) fn rebooted(&self) -> Self {
        let mut runner = self.clone();
        runner.incarnation.boot.push_str(" again");
        runner
    }

    pub(super) fn remembering(&self, operation: &Operation, ended: bool) -> Self {
        let mut runner = self.clone();
        runner.inventory.push((operation.id, ended));
        runner
    }

    pub(super) fn hello(&self) -> v1::Hello {
        let entry = |(id, ended): &(OperationId, bool)| v1::InventoryEntry {
            operation: id.to_string(),
            ended: *ended,
        };
        v1::Hello {
            protocol_version: PROTOCOL_VERSION,
            software_version: "0.1.0".to_owned(),
            incarnation: Some((&self.incarnation).into()),
            capabilities: Some(v1::Capabilities {
                os: "linux".to_owned(),
                architecture: "x86_64".to_owned(),
                hostname: "host".to_owned(),
                sandboxes: vec![v1::Sandbox {
                    sandbox: SandboxId::derive(self.id, "workspace").to_string(),
                    name: "workspace".to_owned(),
                    root: "/w".to_owned(),
                    isolation: "none".to_owned(),
                    problem: String::new(),
                }],
                features: Vec::new(),
                pool: None,
                ceiling: 0,
            }),
            inventory: self.inventory.iter().map(entry).collect(),
            ..v1::Hello::default()
        }
    }
}

/// A runner's end of one link.
pub(super) struct Link {
    to_server: mpsc::Sender<v1::RunnerFrame>,
    from_server: mpsc::Receiver<Box<v1::ServerFrame>>,
    end: JoinHandle<LinkEnd>,
    /// What the server says is durable; it comes whenever it likes.
    commits: Vec<u64>,
}

impl Link {
    /// The next frame that is not a heartbeat.
    pub(super) async fn next(&mut self) -> server_frame::Kind {
        loop {
            let frame = within(self.from_server.recv()).await;
            match frame.and_then(|frame| frame.kind) {
                Some(server_frame::Kind::Heartbeat(_)) => {}
                Some(kind) => return kind,
                None => panic!("the server closed the link"),
            }
        }
    }

    pub(super) async fn next_with_heartbeats(&mut self) -> server_frame::Kind {
        let frame = within(self.from_server.recv()).await;
        let kind = frame.and_then(|frame| frame.kind);
        kind.expect("the server says something")
    }

    /// A frame of a kind that only a newer runner knows.
    pub(super) async fn send_unknown(&self) {
        let sent = self.to_server.send(v1::RunnerFrame { kind: None });
        within(sent).await.expect("the link is there");
    }

    pub(super) async fn operation(&mut self) -> v1::Operation {
        match self.next_order().await {
            server_frame::Kind::Operation(operation) => *operation,
            other => panic!("expected an operation, got {other:?}"),
        }
    }

    pub(super) async fn cancel(&mut self) -> v1::Cancel {
        match self.next().await {
            server_frame::Kind::Cancel(cancel) => cancel,
            other => panic!("expected a cancel, got {other:?}"),
        }
    }

    /// The next frame but for what is committed, which comes whenever it likes and is noted.
    async fn next_order(&mut self) -> server_frame::Kind {
        loop {
            match self.next().await {
                server_frame::Kind::Commit(commit) => self.commits.push(commit.up_to),
                kind => return kind,
            }
        }
    }

    /// Waits until output up to this offset is committed; returns all that was said on the way.
    pub(super) async fn committed(&mut self, up_to: u64) -> Vec<u64> {
        while self.commits.last().is_none_or(|last| *last < up_to) {
            match self.next().await {
                server_frame::Kind::Commit(commit) => self.commits.push(commit.up_to),
                server_frame::Kind::Credit(_) => {}
                other => panic!("expected a commit, got {other:?}"),
            }
        }
        self.commits.clone()
    }

    /// The operation that the runner may forget next.
    pub(super) async fn forgets(&mut self) -> String {
        loop {
            match self.next_order().await {
                server_frame::Kind::Forget(forget) => return forget.operation,
                server_frame::Kind::Credit(_) => {}
                other => panic!("expected that it may be forgotten, got {other:?}"),
            }
        }
    }

    pub(super) async fn credit(&mut self) -> v1::Credit {
        match self.next_order().await {
            server_frame::Kind::Credit(credit) => credit,
            other => panic!("expected credit, got {other:?}"),
        }
    }

    /// Whether the server has sent anything that was not looked at.
    pub(super) fn has_been_sent_something(&mut self) -> bool {
        self.from_server.try_recv().is_ok()
    }

    pub(super) async fn send(&self, kind: runner_frame::Kind) {
        let frame = v1::RunnerFrame { kind: Some(kind) };
        // A link that the server has closed is seen by the test in another way.
        let _ = within(self.to_server.send(frame)).await;
    }

    pub(super) async fn accept(&self, operation: &str) {
        let operation = operation.to_owned();
        self.send(runner_frame::Kind::Accepted(v1::Accepted {
            operation,
            journal_sequence: 0,
        }))
        .await;
    }

    pub(super) async fn output(&self, operation: &str, offset: u64, data: impl Into<Bytes>) {
        let stream = v1::OutputStream::Stdout;
        self.output_on(stream, operation, offset, data).await;
    }

    pub(super) async fn output_on(
        &self,
        stream: v1::OutputStream,
        operation: &str,
        offset: u64,
        data: impl Into<Bytes>,
    ) {
        self.send(runner_frame::Kind::Output(v1::Output {
            operation: operation.to_owned(),
            stream: stream.into(),
            offset,
            data: data.into(),
        }))
        .await;
    }

    pub(super) async fn gap(&self, operation: &str, from: u64, to: u64) {
        self.send(runner_frame::Kind::Gap(v1::Gap {
            operation: operation.to_owned(),
            stream: v1::OutputStream::Stdout.into(),
            from,
            to,
        }))
        .await;
    }

    /// A process ended by itself with code 0 after this many bytes of stdout.
    pub(super) async fn exit(&self, operation: &str, stdout: u64) {
        self.exit_with(operation, stdout, None).await;
    }

    /// The same with the checksum of all of stdout.
    pub(super) async fn exit_with(&self, operation: &str, stdout: u64, checksum: Option<u32>) {
        let end = |offset, checksum| Some(v1::StreamEnd { offset, checksum });
        let record = v1::ExitRecord {
            status: Some(v1::exit_record::Status::Code(0)),
            cause: v1::exit_record::Cause::Exited.into(),
            stdout: end(stdout, checksum),
            stderr: end(0, None),
            wall_ms: 1,
            tree_gone: true,
            ..v1::ExitRecord::default()
        };
        self.end(operation, v1::ended::Outcome::Exited(record))
            .await;
    }

    pub(super) async fn refuse(&self, operation: &str, code: v1::refusal::Code) {
        self.refuse_for(operation, code, Duration::ZERO).await;
    }

    /// The same for so long.
    pub(super) async fn refuse_for(
        &self,
        operation: &str,
        code: v1::refusal::Code,
        time: Duration,
    ) {
        let refusal = v1::Refusal {
            code: code.into(),
            message: "no".to_owned(),
            retry_after_ms: time.as_millis() as u64,
        };
        self.end(operation, v1::ended::Outcome::Refused(refusal))
            .await;
    }

    pub(super) async fn end(&self, operation: &str, outcome: v1::ended::Outcome) {
        self.send(runner_frame::Kind::Ended(v1::Ended {
            operation: operation.to_owned(),
            outcome: Some(outcome),
        }))
        .await;
    }

    pub(super) async fn answer_cancel(&self, operation: &str, answer: v1::cancel_answer::Answer) {
        self.send(runner_frame::Kind::CancelAnswer(v1::CancelAnswer {
            operation: operation.to_owned(),
            answer: answer.into(),
            refusal: None,
        }))
        .await;
    }

    /// The runner is heard no more, and what is sent to it goes nowhere for as long as this is kept.
    pub(super) fn go_dark(self) -> impl Sized {
        drop(self.to_server);
        (self.from_server, self.end)
    }

    /// Hangs up as a broken network does.
    pub(super) async fn hang_up(self) -> LinkEnd {
        drop(self.to_server);
        drop(self.from_server);
        within(self.end)
            .await
            .expect("the link's task does not panic")
    }

    /// Waits for the server's goodbye and the link's end.
    pub(super) async fn goodbye(self) -> (String, LinkEnd) {
        let (goodbye, end) = self.last_words().await;
        (goodbye.reason, end)
    }

    /// The same, with all that the goodbye says.
    pub(super) async fn last_words(mut self) -> (v1::Goodbye, LinkEnd) {
        let goodbye = self.next_order().await;
        let server_frame::Kind::Goodbye(goodbye) = goodbye else {
            panic!("expected a goodbye, got {goodbye:?}");
        };
        let end = within(self.end).await;
        (goodbye, end.expect("the link's task does not panic"))
    }
}

pub(super) fn owner() -> Owner {
    Owner::Session(SessionId::from_u128(5))
}

/// A shell command of its own id.
pub(super) fn exec(number: u128) -> Operation {
    Operation {
        id: OperationId::from_u128(number),
        owner: owner(),
        key: OperationKey::Request(number.to_string()),
        epoch: Epoch(1),
        effect: Effect::Effectful,
        limits: OperationLimits {
            start_within: Duration::from_secs(60),
            run_for: Duration::from_secs(120),
        },
        request: Request::Exec(Exec {
            environment: [("A".to_owned(), "b".to_owned())].into(),
            ..Exec::new(shared_sandbox::Command::Shell(format!("echo {number}")))
        }),
        consent: Consent::Caller,
        trace: None,
    }
}

/// A process that ended by itself with code 0.
pub(super) fn exited(stdout: u64) -> Outcome {
    let end = |offset| StreamEnd {
        offset,
        checksum: None,
    };
    Outcome::Exited(ExitRecord {
        status: ExitStatus::Code(0),
        cause: ExitCause::Exited,
        stdout: end(stdout),
        stderr: end(0),
        wall_ms: 1,
        cpu_us: 0,
        max_rss_bytes: 0,
        tree_gone: true,
    })
}

pub(super) fn stdout(offset: u64, data: &'static str) -> OperationEvent {
    OperationEvent::Output {
        stream: OutputStream::Stdout,
        offset,
        data: Bytes::from_static(data.as_bytes()),
    }
}

/// The next event of an operation; that the runner accepted it says nothing that these tests ask for.
pub(super) async fn next(running: &mut Running) -> OperationEvent {
    loop {
        let event = within(running.events.recv()).await;
        match event.expect("the stream goes on") {
            OperationEvent::Accepted => {}
            event => return event,
        }
    }
}

/// Waits for a condition that another task brings about.
pub(super) async fn eventually(condition: impl Fn() -> bool) {
    within(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

pub(super) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(WITHIN, future).await.expect("it comes in time")
}
