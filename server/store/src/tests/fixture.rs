//! An empty database, and the shortest ways to a tenant, a runner, a running turn in it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use server_records::{ClaimedTurn, Duty, Heard, IfRunning};
use shared_link::server::{HelloFacts, Remembered, SandboxFacts};
use shared_sandbox::Outcome;
use shared_types::{
    CredentialId, Digest, Effect, Epoch, Event, Generation, Incarnation, Isolation, JoinTokenId,
    JournalId, OperationId, OperationKey, OperationScope, Owner, Refusal, RefusalCode, ReplicaId,
    RunnerId, SandboxId, SessionId, TenantId, Timestamp, Token, TokenKind, TurnId, UserId,
    WhileWorking,
    clock::BootMoment,
    entropy::SeededEntropy,
    event::{CallOutcome, Parts, Place, TurnOutcome, TurnSettings},
    token::TokenHash,
};

use crate::{
    AuditOrigin, CredentialKind, Input, Label, LinkClaim, LinkClaimed, NewCredential, NewJoinToken,
    NewOperation, NewRunner, NewSession, NewTenant, NewUser, PostgresUrl, SettingChange,
    SettingName, SettingsChanged, SettingsOf, Store, StoreError, ThisReplica,
    tests::postgres::cluster,
};

/// The server process of the tests.
pub(super) const REPLICA: ReplicaId = ReplicaId::from_u128(1);

/// A replica at this place, which answers no others.
pub(super) fn this_replica(id: ReplicaId, place: &str) -> ThisReplica {
    ThisReplica {
        id,
        place: place.to_owned(),
        address: None,
        identity: Digest::of(b"identity"),
        challenge_salt: Digest::of(b"salt"),
        version: "1.2.3".to_owned(),
    }
}

/// The usual replica counts this silence.
pub(super) async fn count_silence(db: &Store, passed: Duration) {
    let duty = db.take_silence(REPLICA).await.expect("it answers");
    assert_ne!(duty, Duty::OfAnother);
    let counted = db.count_silence(REPLICA, passed).await;
    counted.expect("it answers");
}

pub(super) struct Fixture {
    pub(super) db: Store,
    place: DatabasePlace,
}

enum DatabasePlace {
    File(
        PathBuf,
        #[expect(dead_code, reason = "it is removed with the test")] tempfile::TempDir,
    ),
    Postgres(Box<PostgresUrl>),
}

impl Fixture {
    pub(super) async fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let path = folder.path().join("gantry.db");
        Self {
            db: Store::open(&path).await.expect("an empty folder is fine"),
            place: DatabasePlace::File(path, folder),
        }
    }

    pub(super) async fn postgres() -> Self {
        let url = cluster::migrated().await;
        let db = Store::open_postgres(&url).await;
        Self {
            db: db.expect("the database is ours"),
            place: DatabasePlace::Postgres(url.into()),
        }
    }

    /// Another database of the same kind, without rows; of an earlier schema, where one is named.
    pub(super) async fn another(&self, schema: Option<i64>) -> Self {
        let (Some(schema), place) = (schema, &self.place) else {
            return match &self.place {
                DatabasePlace::File(..) => Self::sqlite().await,
                DatabasePlace::Postgres(_) => Self::postgres().await,
            };
        };
        let (db, place) = match place {
            DatabasePlace::File(..) => {
                let folder = tempfile::tempdir().expect("there is a temporary folder");
                let path = folder.path().join("gantry.db");
                let db = Store::open_at(&path, schema).await;
                (db, DatabasePlace::File(path, folder))
            }
            DatabasePlace::Postgres(_) => {
                let (_, url) = cluster::empty("").await;
                let db = Store::open_postgres_at(&url, schema).await;
                (db, DatabasePlace::Postgres(url.into()))
            }
        };
        Self {
            db: db.expect("an empty database is fine"),
            place,
        }
    }

    /// The schema that this program makes.
    pub(super) async fn newest_schema(&self) -> i64 {
        let schema = match &self.place {
            DatabasePlace::File(path, _) => Store::schema_of_file(path).await,
            DatabasePlace::Postgres(url) => Store::schema_of_postgres(url).await,
        };
        schema.expect("it is there").known
    }

    pub(super) fn path(&self) -> &Path {
        match &self.place {
            DatabasePlace::File(path, _) => path,
            DatabasePlace::Postgres(url) => panic!("{url} is no file"),
        }
    }

    pub(super) fn url(&self) -> &PostgresUrl {
        match &self.place {
            DatabasePlace::File(path, _) => panic!("{} is a file", path.display()),
            DatabasePlace::Postgres(url) => url,
        }
    }

    /// As after a restart of the server.
    pub(super) async fn reopened(self) -> Self {
        self.db.close().await;
        let db = match &self.place {
            DatabasePlace::File(path, _) => Store::open(path).await,
            DatabasePlace::Postgres(url) => Store::open_postgres(url).await,
        };
        Self {
            db: db.expect("the database is there"),
            place: self.place,
        }
    }

    /// A tenant with an owner.
    pub(super) async fn tenant(&self) -> Tenant {
        let new = NewTenant {
            id: TenantId::from_u128(unique()),
            name: "a tenant".to_owned(),
        };
        let owner = NewUser {
            id: UserId::from_u128(unique()),
            name: "owner".to_owned(),
        };
        let made = self.db.create_tenant(&new, &owner, at(0)).await;
        made.expect("the ids are new");
        Tenant {
            db: self.db.clone(),
            id: new.id,
            owner: owner.id,
        }
    }
}

/// A tenant with the things that most tests need.
pub(super) struct Tenant {
    pub(super) db: Store,
    pub(super) id: TenantId,
    pub(super) owner: UserId,
}

impl Tenant {
    pub(super) fn new_join_token(&self, name: &str) -> NewJoinToken {
        NewJoinToken {
            id: JoinTokenId::from_u128(unique()),
            owner: self.owner,
            name: name.to_owned(),
            labels: BTreeMap::from([("zone".to_owned(), "home".to_owned())]),
            hash: token_hash(),
            expires_at: at(600),
            uses: 1,
            ephemeral: false,
            from: None,
            origin: AuditOrigin::default(),
        }
    }

    pub(super) async fn join_token(&self, name: &str) -> TokenHash {
        let token = self.new_join_token(name);
        self.db
            .create_join_token(self.id, &token, at(0))
            .await
            .expect("the owner is there");
        token.hash
    }

    pub(super) async fn runner(&self, name: &str) -> RunnerId {
        let hash = self.join_token(name).await;
        let runner = new_runner("");
        let row = self.db.enrol(&hash, &runner, at(1)).await;
        row.expect("the token is good").id
    }

    pub(super) async fn link(&self, runner: RunnerId, now: Timestamp) -> LinkClaimed {
        self.db
            .link_claim(self.id, runner, &link_claim(1, 0), now)
            .await
            .expect("the runner is there")
    }

    pub(super) async fn session(&self) -> SessionId {
        let session = NewSession {
            id: SessionId::from_u128(unique()),
            user: self.owner,
            title: String::new(),
            model: "practice".to_owned(),
            chosen_model: None,
            pin: None,
            directory: String::new(),
        };
        let row = self
            .db
            .create_session(self.id, &session, u64::MAX, at(1))
            .await;
        row.expect("the owner is there").id
    }

    pub(super) async fn send(&self, session: SessionId, text: &str) -> TurnId {
        let sent = self
            .db
            .send_input(self.id, session, &self.input(text), at(2))
            .await;
        sent.expect("the session is there").turn
    }

    pub(super) fn input(&self, text: &str) -> Input {
        Input {
            turn: TurnId::from_u128(unique()),
            by: self.owner,
            credential: None,
            client_id: None,
            text: text.to_owned(),
            images: Vec::new(),
            compacts: None,
            terms: shared_types::event::Terms::default(),
            while_working: WhileWorking::Queue,
            trace: None,
        }
    }

    pub(super) async fn claim(&self, session: SessionId) -> ClaimedTurn {
        self.db
            .claim_turn(self.id, session, REPLICA, IfRunning::Refuse, usual(), at(3))
            .await
            .expect("nothing runs")
            .expect("a turn waits")
    }

    /// One value is set, or not any more.
    pub(super) async fn set(
        &self,
        of: SettingsOf,
        name: SettingName,
        value: Option<&str>,
    ) -> Result<SettingsChanged, StoreError> {
        let value = value.map(str::to_owned);
        let changes = [SettingChange { name, value }];
        let by = self.owner.into();
        self.db
            .change_settings(self.id, of, &changes, None, &by, at(4))
            .await
    }

    /// A session is pinned to a runner, or not any more.
    pub(super) async fn pin(
        &self,
        session: SessionId,
        runner: Option<RunnerId>,
    ) -> Result<SettingsChanged, StoreError> {
        let (of, runner) = (
            SettingsOf::Session(session),
            runner.map(|id| id.to_string()),
        );
        self.set(of, SettingName::Runner, runner.as_deref()).await
    }

    /// A linked runner, a session, a turn that runs, and an operation that is not placed yet.
    pub(super) async fn at_work(&self) -> AtWork {
        let runner = self.runner(&format!("r{}", unique())).await;
        self.link(runner, at(2)).await;
        let session = self.session().await;
        self.send(session, "run the tests").await;
        let claimed = self.claim(session).await;
        AtWork {
            runner,
            session,
            turn: claimed.turn.id,
            epoch: claimed.epoch,
            operation: self.operation(runner, session, claimed.turn.id),
        }
    }

    fn operation(&self, runner: RunnerId, session: SessionId, turn: TurnId) -> NewOperation {
        let key = OperationKey::Call {
            turn,
            step: 1,
            ordinal: 0,
            attempt: 0,
        };
        let scope = OperationScope::of(self.id);
        NewOperation {
            id: OperationId::derive(&scope, &Owner::Session(session), &key),
            session,
            turn,
            step: 1,
            ordinal: 0,
            attempt: 0,
            digest: Digest::of(b"make test"),
            place: Place {
                runner,
                runner_name: "laptop".to_owned(),
                sandbox: SandboxId::derive(runner, "workspace"),
                isolation: Isolation::none(),
            },
            incarnation: incarnation(1),
            effect: Effect::Effectful,
            start_by: BootMoment {
                boot: "the server's".to_owned(),
                at: Duration::from_micros(600_000_001),
            },
            deadline_at: at(600),
            label: Label {
                kind: "exec".to_owned(),
                title: "make test".to_owned(),
            },
            trace: None,
        }
    }
}

pub(super) struct AtWork {
    pub(super) runner: RunnerId,
    pub(super) session: SessionId,
    pub(super) turn: TurnId,
    pub(super) epoch: Epoch,
    pub(super) operation: NewOperation,
}

/// What turns are run with where nothing is set.
pub(super) fn usual() -> &'static TurnSettings {
    static USUAL: LazyLock<TurnSettings> = LazyLock::new(|| TurnSettings {
        model: "usual".to_owned(),
        language: None,
        steps: 50,
        machine: None,
        own_runner: false,
        mode: None,
        ceiling: None,
        machine_ceiling: None,
    });
    &USUAL
}

/// A moment, in seconds.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

pub(super) fn unique() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(100);
    NEXT.fetch_add(1, Ordering::Relaxed).into()
}

pub(super) fn token_hash() -> TokenHash {
    let seed = u64::try_from(unique()).expect("it counts from 100");
    Token::generate(TokenKind::ApiKey, &SeededEntropy::new(seed)).hash()
}

pub(super) fn new_credential(kind: CredentialKind) -> NewCredential {
    NewCredential {
        id: CredentialId::from_u128(unique()),
        kind,
        name: "laptop".to_owned(),
        hash: token_hash(),
        made_by: None,
        scopes: None,
        expires_at: None,
        from: None,
        origin: AuditOrigin::default(),
        maker: None,
        second_hash: (kind == CredentialKind::Browser).then(token_hash),
    }
}

pub(super) fn new_runner(name: &str) -> NewRunner {
    let unique = unique();
    NewRunner {
        id: RunnerId::from_u128(unique),
        name: name.to_owned(),
        labels: BTreeMap::from([("zone".to_owned(), "elsewhere".to_owned())]),
        public_key: *Digest::of(&unique.to_be_bytes()).as_bytes(),
        hostname: "laptop.local".to_owned(),
        version: "0.1.0".to_owned(),
    }
}

pub(super) fn incarnation(journal: u128) -> Incarnation {
    Incarnation {
        journal: JournalId::from_u128(journal),
        boot: "b5b2c0b2-0000-4000-8000-000000000000".to_owned(),
    }
}

pub(super) fn link_claim(journal: u128, journal_sequence: u64) -> LinkClaim {
    LinkClaim {
        replica: REPLICA,
        hello: HelloFacts {
            protocol_version: 1,
            software_version: "0.1.1".to_owned(),
            incarnation: incarnation(journal),
            journal_sequence,
            os: "linux".to_owned(),
            architecture: "x86_64".to_owned(),
            hostname: "laptop.local".to_owned(),
            features: vec!["watch".to_owned()],
            sandboxes: vec![SandboxFacts {
                id: SandboxId::from_u128(1),
                name: "workspace".to_owned(),
                root: "/home/me/work".to_owned(),
                isolation: Isolation::none(),
                problem: String::new(),
            }],
            pool: None,
            ceiling: None,
            inventory: Vec::new(),
        },
    }
}

/// An operation that the runner remembers.
pub(super) fn remembered(operation: OperationId) -> Remembered {
    Remembered {
        operation,
        ended: false,
    }
}

/// An end that is told apart by its words.
pub(super) fn end_of(words: &str) -> Outcome {
    Outcome::Refused(Refusal::new(RefusalCode::Invalid, words))
}

/// A sign of life of a link.
pub(super) fn heard_at(generation: Generation, at: Timestamp, accepted: u64) -> Heard {
    Heard {
        generation,
        at,
        accepted,
    }
}

pub(super) fn call_ended(turn: TurnId, outcome: CallOutcome) -> Event {
    Event::CallEnded {
        turn,
        step: 1,
        ordinal: 0,
        outcome,
        parts: Parts::text("done".to_owned()),
        unplaced: false,
        task: None,
        awaits: None,
        budget_ms: 1000,
        duration_ms: 10,
        overran: false,
        file: None,
        whole: None,
        findings: Vec::new(),
        tools: Vec::new(),
    }
}

pub(super) fn turn_ended(turn: TurnId, outcome: TurnOutcome) -> Event {
    Event::TurnEnded {
        turn,
        outcome,
        reason: None,
    }
}
