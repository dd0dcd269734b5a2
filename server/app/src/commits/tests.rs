use std::sync::Arc;
use std::{collections::BTreeMap, time::Duration};

use server_agent::feed::Signal;
use server_records::{IfRunning, LinkIdentity, LinkRows};
use server_router::{
    Reaper, SilenceLimits,
    links::{LinkOptions, Links},
};
use server_store::{
    Input, LinkClaim, NewJoinToken, NewOperation, NewRunner, NewSession, NewTenant, NewUser,
    OutputKey, Outputs, Ports, Store,
};
use shared_link::server::{HelloFacts, ReconcileVerdict, SandboxFacts};
use shared_sandbox::{Outcome, OutputStream};
use shared_types::{
    Clock, Digest, Effect, Epoch, Event, Generation, Incarnation, Isolation, JoinTokenId,
    JournalId, OperationId, Refusal, RefusalCode, ReplicaId, RunnerId, SandboxId, SystemClock,
    Token, TurnId, UserId, WhileWorking,
    clock::{BootMoment, ManualClock},
    entropy::SeededEntropy,
    event::{CallOutcome, Parts, Place, TurnSettings},
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::*;

const TENANT: TenantId = TenantId::from_u128(1);
const OWNER: UserId = UserId::from_u128(2);
const SESSION: SessionId = SessionId::from_u128(3);
const TURN: TurnId = TurnId::from_u128(4);
const OPERATION: OperationId = OperationId::from_u128(5);
const REPLICA: ReplicaId = ReplicaId::from_u128(6);

#[tokio::test]
async fn watchers_hear_of_an_outcome_that_comes_after_its_call_has_ended() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (store, rows) = rows(folder.path()).await;
    let who = linked_runner(&store, &rows).await;
    call_without_an_outcome(&store, &who).await;

    let mut watch = rows.hub.watch(SESSION).await.expect("the hub lives");
    let outcome = Outcome::Refused(Refusal::new(RefusalCode::Lost, "nobody knows"));
    let settled = rows
        .links
        .operations(&who)
        .settle(OPERATION, &outcome)
        .await;
    settled.expect("the store answers");
    let heard = timeout(Duration::from_secs(30), watch.signals.recv()).await;
    assert!(matches!(heard, Ok(Ok(Signal::Appended(_)))), "{heard:?}");
    let log = store.events_after(TENANT, SESSION, 0, 100).await;
    let log = log.expect("the session is there");
    let last = log.last().and_then(|event| event.known());
    assert!(matches!(last, Some(Event::OperationSettled { .. })));
}

const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A server that looks for runners that do not come back; of one an operation is open, and its link
/// has ended.
struct Waiting {
    _folder: tempfile::TempDir,
    store: Store,
    rows: Rows,
    who: LinkIdentity,
    clock: Arc<ManualClock>,
    reaper: Reaper,
}

impl Waiting {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (store, rows) = rows(folder.path()).await;
        let who = linked_runner(&store, &rows).await;
        call_without_an_outcome(&store, &who).await;
        rows.links.ended(&who, Generation(1), 0).await;
        let clock = Arc::new(ManualClock::at(rows.clock.now()));
        Self {
            _folder: folder,
            reaper: reaper(&rows, clock.clone()).await,
            store,
            rows,
            who,
            clock,
        }
    }

    async fn look(&mut self) {
        self.reaper.look().await.expect("the store answers");
    }

    /// Looks as often as it takes to count, and to do what is due.
    async fn look_twice(&mut self) {
        self.look().await;
        self.look().await;
    }

    /// The server ends, and another one begins to look, when its host's clocks show something else.
    async fn restart(&mut self) {
        self.clock.advance(10 * WEEK);
        self.reaper = reaper(&self.rows, self.clock.clone()).await;
    }

    async fn outcome(&self) -> Option<server_store::StoredOutcome> {
        let row = self.store.operation(TENANT, OPERATION).await;
        row.expect("it is there").outcome
    }
}

/// One that has taken its duty.
async fn reaper(rows: &Rows, clock: Arc<ManualClock>) -> Reaper {
    let options = LinkOptions::default();
    let limits = SilenceLimits {
        operations_lost_after: options.lost_after,
        ephemeral_removed_after: 100 * WEEK,
    };
    let links = Links::start(
        Arc::clone(&rows.links),
        clock.clone(),
        Arc::new(SeededEntropy::new(1)),
        options,
        CancellationToken::new(),
    );
    let ports = Ports {
        clock: clock.clone(),
        ..rows.ports.clone()
    };
    let mut reaper = Reaper::from_now(ports.silent_runners(REPLICA), links, clock, limits);
    reaper.look().await.expect("the store answers");
    reaper
}

#[tokio::test]
async fn what_is_open_on_a_runner_that_does_not_come_back_is_lost_after_a_week() {
    let mut waiting = Waiting::new().await;
    let mut watch = waiting
        .rows
        .hub
        .watch(SESSION)
        .await
        .expect("the hub lives");
    waiting.look().await;
    waiting.clock.advance(WEEK - Duration::from_secs(60));
    waiting.look_twice().await;
    assert_eq!(waiting.outcome().await, None);
    waiting.clock.advance(Duration::from_secs(60));
    waiting.look_twice().await;
    let stored = waiting.outcome().await.expect("it is lost");
    assert!(stored.json.contains("did not come back"), "{stored:?}");
    let heard = timeout(Duration::from_secs(30), watch.signals.recv()).await;
    assert!(matches!(heard, Ok(Ok(Signal::Appended(_)))), "{heard:?}");
}

#[tokio::test]
async fn a_wall_clock_that_is_set_loses_nothing_and_holds_up_nothing() {
    let mut waiting = Waiting::new().await;
    let month = 30 * 24 * 60 * 60 * 1_000_000;
    waiting.look().await;
    waiting.clock.set_wall(month);
    waiting.look_twice().await;
    waiting.clock.advance(WEEK - Duration::from_secs(60));
    waiting.look_twice().await;
    assert_eq!(waiting.outcome().await, None);
    waiting.clock.set_wall(-2 * month);
    waiting.clock.advance(Duration::from_secs(60));
    waiting.look_twice().await;
    assert!(waiting.outcome().await.is_some());
}

#[tokio::test]
async fn a_runner_is_silent_for_as_long_as_servers_were_there_to_hear_it() {
    let mut waiting = Waiting::new().await;
    waiting.look().await;
    waiting.clock.advance(WEEK / 2);
    waiting.look().await;
    // While no server runs nobody can hear it.
    waiting.restart().await;
    waiting.look_twice().await;
    assert_eq!(waiting.outcome().await, None);
    waiting.clock.advance(WEEK / 2);
    waiting.look().await;
    assert_eq!(
        waiting.outcome().await,
        None,
        "it is due with the next look"
    );
    waiting.restart().await;
    waiting.look().await;
    assert!(waiting.outcome().await.is_some());
}

#[tokio::test]
async fn a_runner_that_comes_back_to_a_server_whose_host_was_suspended_loses_nothing() {
    let mut waiting = Waiting::new().await;
    waiting.look().await;
    waiting.clock.suspend(2 * WEEK);
    waiting.look().await;
    let (claim, now) = (link_claim(), waiting.rows.clock.now());
    let linked = waiting
        .store
        .link_claim(TENANT, waiting.who.runner, &claim, now);
    let generation = linked.await.expect("the runner is there").generation;
    waiting.look_twice().await;
    waiting.rows.links.ended(&waiting.who, generation, 0).await;
    waiting.look_twice().await;
    assert_eq!(waiting.outcome().await, None);
}

#[tokio::test]
async fn a_runner_keeps_the_output_of_an_operation_until_all_of_it_has_come() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (store, rows) = rows(folder.path()).await;
    let who = linked_runner(&store, &rows).await;
    call_without_an_outcome(&store, &who).await;
    let verdict = async || {
        let verdicts = rows.links.verdicts(&who, &[OPERATION]).await;
        verdicts.expect("the store answers").remove(0).1
    };
    assert_eq!(verdict().await, ReconcileVerdict::Collect);

    let settled = rows
        .links
        .operations(&who)
        .settle(OPERATION, &exited(5))
        .await;
    settled.expect("the store answers");
    assert_eq!(verdict().await, ReconcileVerdict::Collect);
    let outputs = rows.links.operations(&who).outputs();
    for (offset, data) in [(0, "ab"), (2, "cde")] {
        assert_eq!(verdict().await, ReconcileVerdict::Collect);
        let stream = OutputStream::Stdout;
        let kept = outputs.append(OPERATION, stream, offset, data.into()).await;
        kept.expect("the area is there");
    }
    assert_eq!(verdict().await, ReconcileVerdict::Forget);
    // Also where the server is killed now.
    let next = Outputs::start(&folder.path().join("output")).expect("a folder");
    let key = OutputKey {
        tenant: TENANT,
        operation: OPERATION,
        stream: OutputStream::Stdout,
    };
    assert_eq!(next.end(key).await.expect("the files can be read"), 5);
}

#[tokio::test]
async fn what_is_durable_of_an_operation_is_said_while_somebody_waits_for_it_and_not_after() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (store, rows) = rows(folder.path()).await;
    let who = linked_runner(&store, &rows).await;
    open_call(&store, &who).await;
    let unknown = OperationId::from_u128(77);
    let verdicts = async || {
        let verdicts = rows.links.verdicts(&who, &[unknown, OPERATION]).await;
        let verdicts = verdicts.expect("the store answers");
        assert_eq!(verdicts[0], (unknown, ReconcileVerdict::Forget));
        verdicts[1].1.clone()
    };
    let keep = |committed| ReconcileVerdict::Keep { committed };
    assert_eq!(verdicts().await, keep([0, 0]));
    let outputs = rows.links.operations(&who).outputs();
    for (stream, data) in [
        (OutputStream::Stdout, "hello"),
        (OutputStream::Stderr, "oh"),
    ] {
        let kept = outputs.append(OPERATION, stream, 0, data.into()).await;
        kept.expect("the area is there");
    }
    assert_eq!(verdicts().await, keep([5, 2]));

    // The collector may have kept output that only its reader may commit.
    let now = rows.clock.now();
    let cancelled = store.cancel_operation(TENANT, OPERATION, now).await;
    cancelled.expect("it is there");
    assert!(matches!(verdicts().await, ReconcileVerdict::Cancel { .. }));
    let settled = rows
        .links
        .operations(&who)
        .settle(OPERATION, &exited(5))
        .await;
    settled.expect("the store answers");
    assert_eq!(verdicts().await, keep([0, 0]));
}

fn exited(stdout: u64) -> Outcome {
    let end = |offset| shared_sandbox::StreamEnd {
        offset,
        checksum: None,
    };
    Outcome::Exited(shared_sandbox::ExitRecord {
        status: shared_sandbox::ExitStatus::Code(0),
        cause: shared_sandbox::ExitCause::Exited,
        stdout: end(stdout),
        stderr: end(0),
        wall_ms: 1,
        cpu_us: 0,
        max_rss_bytes: 0,
        tree_gone: true,
    })
}

/// The ports of a server, and the hub that hears of its commits.
struct Rows {
    ports: Ports,
    links: Arc<dyn LinkRows>,
    hub: LiveHub,
    clock: Arc<dyn Clock>,
}

async fn rows(folder: &std::path::Path) -> (Store, Rows) {
    let store = Store::open(&folder.join("gantry.db")).await;
    let commits = Commits::start(ChangeHub::new().0);
    let hub = commits.hub.clone();
    let store = store.expect("a new database").heard_by(Arc::new(commits));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let ports = Ports {
        store: store.clone(),
        outputs: Outputs::start(&folder.join("output")).expect("a folder"),
        clock: clock.clone(),
        forbids_sudo: false,
    };
    let rows = Rows {
        links: ports.clone().links(REPLICA),
        ports,
        hub,
        clock,
    };
    (store, rows)
}

async fn linked_runner(store: &Store, rows: &Rows) -> LinkIdentity {
    let now = rows.clock.now();
    let tenant = NewTenant {
        id: TENANT,
        name: "home".to_owned(),
    };
    let owner = NewUser {
        id: OWNER,
        name: "owner".to_owned(),
    };
    let made = store.bootstrap(&tenant, &owner, now).await;
    made.expect("the database is empty");
    let token = NewJoinToken {
        id: JoinTokenId::from_u128(7),
        owner: OWNER,
        name: "laptop".to_owned(),
        labels: BTreeMap::new(),
        hash: Token::join([0; 32], &SeededEntropy::new(1)).hash(),
        expires_at: now.after(Duration::from_secs(60)),
        uses: 1,
        ephemeral: false,
        from: None,
        origin: Default::default(),
    };
    let made = store.create_join_token(TENANT, &token, now).await;
    made.expect("the owner is there");
    let runner = NewRunner {
        id: RunnerId::from_u128(8),
        name: String::new(),
        labels: BTreeMap::new(),
        public_key: [7; 32],
        hostname: "laptop".to_owned(),
        version: "1".to_owned(),
    };
    let enrolled = store.enrol(&token.hash, &runner, now).await;
    let runner = enrolled.expect("the token is good").id;
    let claimed = store.link_claim(TENANT, runner, &link_claim(), now).await;
    claimed.expect("the runner is there");
    LinkIdentity {
        tenant: TENANT,
        runner,
        name: "laptop".to_owned(),
    }
}

fn link_claim() -> LinkClaim {
    LinkClaim {
        replica: REPLICA,
        hello: HelloFacts {
            protocol_version: 1,
            software_version: "1".to_owned(),
            incarnation: incarnation(),
            journal_sequence: 0,
            os: "linux".to_owned(),
            architecture: "x86_64".to_owned(),
            hostname: "laptop".to_owned(),
            features: Vec::new(),
            sandboxes: vec![SandboxFacts {
                id: SandboxId::from_u128(1),
                name: "workspace".to_owned(),
                root: "/work".to_owned(),
                isolation: Isolation::none(),
                problem: String::new(),
            }],
            pool: None,
            ceiling: None,
            inventory: Vec::new(),
        },
    }
}

/// A turn whose only call was placed, and ended before anybody knew what became of it.
async fn call_without_an_outcome(store: &Store, who: &LinkIdentity) {
    let epoch = open_call(store, who).await;
    let ended = Event::CallEnded {
        turn: TURN,
        step: 1,
        ordinal: 0,
        outcome: CallOutcome::Unknown,
        parts: Parts::text("outcome unknown".to_owned()),
        unplaced: false,
        task: None,
        awaits: None,
        budget_ms: 1,
        duration_ms: 1,
        overran: false,
        file: None,
        whole: None,
        findings: Vec::new(),
        tools: Vec::new(),
    };
    let now = SystemClock::new().now();
    let recorded = store.append(TENANT, SESSION, epoch, &[ended], now).await;
    recorded.expect("the turn runs");
}

/// A turn whose only call was placed; its epoch.
async fn open_call(store: &Store, who: &LinkIdentity) -> Epoch {
    let now = SystemClock::new().now();
    let session = NewSession {
        id: SESSION,
        user: OWNER,
        title: String::new(),
        model: "none".to_owned(),
        chosen_model: None,
        pin: None,
        directory: String::new(),
    };
    let made = store.create_session(TENANT, &session, u64::MAX, now).await;
    made.expect("the owner is there");
    let input = Input {
        turn: TURN,
        by: OWNER,
        credential: None,
        client_id: None,
        text: "go".to_owned(),
        images: Vec::new(),
        compacts: None,
        terms: shared_types::event::Terms::default(),
        while_working: WhileWorking::Queue,
        trace: None,
    };
    let sent = store.send_input(TENANT, SESSION, &input, now).await;
    sent.expect("the session is there");
    let take_over = IfRunning::TakeOver;
    let settings = TurnSettings {
        model: "none".to_owned(),
        language: None,
        steps: 50,
        machine: None,
        own_runner: false,
        mode: None,
        ceiling: None,
        machine_ceiling: None,
    };
    let claimed = store.claim_turn(TENANT, SESSION, REPLICA, take_over, &settings, now);
    let claimed = claimed.await.expect("the session is there");
    let epoch = claimed.expect("a turn waits").epoch;
    let sandboxes = store.sandboxes_of_runner(TENANT, who.runner).await;
    let operation = NewOperation {
        id: OPERATION,
        session: SESSION,
        turn: TURN,
        step: 1,
        ordinal: 0,
        attempt: 0,
        digest: Digest::of(b"request"),
        place: Place {
            runner: who.runner,
            runner_name: who.name.clone(),
            sandbox: sandboxes.expect("the runner is there")[0].id,
            isolation: Isolation::none(),
        },
        incarnation: incarnation(),
        effect: Effect::Effectful,
        start_by: BootMoment {
            boot: "boot".to_owned(),
            at: Duration::from_secs(60),
        },
        deadline_at: now,
        label: server_store::Label::default(),
        trace: None,
    };
    let placed = store.place_operation(TENANT, epoch, &operation, now).await;
    placed.expect("the turn runs");
    epoch
}

fn incarnation() -> Incarnation {
    Incarnation {
        journal: JournalId::from_u128(9),
        boot: "boot".to_owned(),
    }
}
