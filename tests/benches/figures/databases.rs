//! The real server on each of its databases: durable turns, and lists of a large tenant.
//!
//! Both databases sync every commit to the same disk.

use std::sync::Arc;

use server_records::IfRunning;
use server_store::{By, Input, NewSession, NewSignInCode, NewTenant, NewUser, Role, Store};
use shared_types::{
    Clock as _, Digest, Event, OsEntropy, ReplicaId, SessionId, SystemClock, TenantId, TurnId,
    UserId, WhileWorking,
    event::{TurnOutcome, TurnSettings},
};
use tests::{
    gantry::{Gantry, Setup},
    postgres::Postgres,
};
use tokio::task::JoinSet;

use crate::table::{Figure, Goal, Stopwatch, Unit, percentile};

const ROUNDS: usize = 5;
/// Sessions that work side by side, so that they share commits.
const SESSIONS: usize = 64;
/// Turns of each session in one round.
const TURNS: usize = 16;

/// People of the large tenant, and the sessions of each.
const PEOPLE: usize = 10_000;
const SESSIONS_EACH: usize = 9;
/// Sessions of the one who asks.
const OWN_SESSIONS: usize = 10_000;
/// Requests of one kind in a round.
const REQUESTS: usize = 40;

/// Everything that is measured on both databases.
pub(crate) async fn figures(watch: &Stopwatch) -> Vec<Figure> {
    let postgres = Postgres::start_synced();
    let mut figures = Vec::new();
    for (name, database) in [("SQLite", None), ("PostgreSQL", Some(&postgres))] {
        figures.push(turns(name, database, watch).await);
    }
    figures.extend(lists(&postgres, watch).await);
    figures
}

/// Whole turns of the server, without a tool, against the three commits of each alone.
async fn turns(name: &str, database: Option<&Postgres>, watch: &Stopwatch) -> Figure {
    let what = format!(
        "durable turns, {SESSIONS} sessions at a time, {name} (peer: the three synced commits of each)"
    );
    let mut figure = Figure::new(what, Unit::PerSecond, Goal::RatioAtLeast(0.6));
    let gantry = Gantry::with(Setup {
        database: database.map(Postgres::database),
        ..Setup::with_many_sessions()
    })
    .await;
    let here = tempfile::tempdir().expect("a temporary folder");
    let store = match database {
        None => Store::open(&here.path().join("bench.db")).await,
        Some(postgres) => {
            let url = postgres.database().parse().expect("a URL");
            Store::open_postgres(&url).await
        }
    };
    let bare = Cycles::new(store.expect("a database")).await;
    let mut talks = Vec::new();
    for _ in 0..SESSIONS {
        talks.push(gantry.talk().await);
    }
    for round in 0..=ROUNDS {
        let mut lanes = JoinSet::new();
        let (ours, ()) = watch
            .time(async {
                for mut talk in std::mem::take(&mut talks) {
                    lanes.spawn(async move {
                        for _ in 0..TURNS {
                            let told = talk.say("hello").await;
                            assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
                        }
                        talk
                    });
                }
                while let Some(talk) = lanes.join_next().await {
                    talks.push(talk.expect("its turns complete"));
                }
            })
            .await;
        let peer = watch.time(bare.run()).await.0;
        if round > 0 {
            let turns = (SESSIONS * TURNS) as f64;
            figure.round(turns / ours, turns / peer);
            continue;
        }
        // The first round warms both.
        if let Some(postgres) = database {
            postgres.analyze();
        }
    }
    figure
}

/// What is durable of a turn, and nothing else: message, claim and end.
struct Cycles {
    store: Store,
    tenant: TenantId,
    sessions: Vec<(UserId, SessionId)>,
}

impl Cycles {
    async fn new(store: Store) -> Arc<Self> {
        let (tenant, owner) = (TenantId::from_u128(1), UserId::from_u128(1));
        let name = "bench".to_owned();
        let new = NewTenant {
            id: tenant,
            name: name.clone(),
        };
        let owner = NewUser { id: owner, name };
        let made = store.bootstrap(&new, &owner, SystemClock::new().now());
        let made = made.await.expect("it is empty");
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            sessions.push((made.owner, begin(&store, made.tenant, made.owner, "").await));
        }
        Arc::new(Self {
            store,
            tenant: made.tenant,
            sessions,
        })
    }

    async fn run(self: &Arc<Self>) {
        let mut lanes = JoinSet::new();
        for (user, session) in self.sessions.clone() {
            let cycles = self.clone();
            lanes.spawn(async move {
                for _ in 0..TURNS {
                    cycles.turn(user, session).await;
                }
            });
        }
        while let Some(lane) = lanes.join_next().await {
            lane.expect("its turns are stored");
        }
    }

    async fn turn(&self, by: UserId, session: SessionId) {
        let (clock, tenant, store) = (SystemClock::new(), self.tenant, &self.store);
        let input = Input {
            turn: TurnId::generate(&clock, &OsEntropy),
            by,
            credential: None,
            client_id: None,
            images: Vec::new(),
            compacts: None,
            terms: shared_types::event::Terms::default(),
            while_working: WhileWorking::Queue,
            text: "hello".to_owned(),
            trace: None,
        };
        let sent = store.send_input(tenant, session, &input, clock.now());
        sent.await.expect("it is stored");
        let usual = TurnSettings {
            model: "none".to_owned(),
            language: None,
            steps: 50,
            machine: None,
            own_runner: false,
            mode: None,
            ceiling: None,
            machine_ceiling: None,
        };
        let (replica, refuse) = (ReplicaId::from_u128(1), IfRunning::Refuse);
        let claimed = store.claim_turn(tenant, session, replica, refuse, &usual, clock.now());
        let claimed = claimed.await.expect("it is stored").expect("a turn waits");
        let end = [Event::TurnEnded {
            turn: claimed.turn.id,
            outcome: TurnOutcome::Completed,
            reason: None,
        }];
        let ended = store.append(tenant, session, claimed.epoch, &end, clock.now());
        ended.await.expect("it is stored");
    }
}

async fn begin(store: &Store, tenant: TenantId, user: UserId, title: &str) -> SessionId {
    let clock = SystemClock::new();
    let session = NewSession {
        id: SessionId::generate(&clock, &OsEntropy),
        user,
        title: title.to_owned(),
        model: "none".to_owned(),
        chosen_model: None,
        pin: None,
        directory: String::new(),
    };
    let made = store.create_session(tenant, &session, u64::MAX, clock.now());
    made.await.expect("it is stored").id
}

/// Lists of a tenant with 10,000 people and 100,000 sessions, a page of 50 at a time. The tenant is
/// made on SQLite and copied to PostgreSQL as `gantry-server move` does it.
async fn lists(postgres: &Postgres, watch: &Stopwatch) -> Vec<Figure> {
    let mut gantry = Gantry::practice().await;
    let _ = gantry.stop_server().await;
    let file = Store::open(&gantry.home().join("server/gantry.db")).await;
    let file = file.expect("the server's database");
    fill(&file).await;
    let url = postgres.database();
    let other = Store::open_postgres(&url.parse().expect("a URL")).await;
    let other = other.expect("it is empty");
    let copied = server_store::copy(&file, &other).await;
    copied.expect("it is copied");
    file.close().await;
    other.close().await;
    let mut figures = Vec::new();
    for name in ["SQLite", "PostgreSQL"] {
        if name == "PostgreSQL" {
            let _ = gantry.stop_server().await;
            gantry.use_database(&url);
        }
        gantry.start_server().await;
        for list in ["sessions", "people"] {
            figures.extend(pages(&gantry, name, list, watch).await);
        }
    }
    figures
}

/// Fills the tenant of the server.
async fn fill(store: &Store) {
    let clock = SystemClock::new();
    let name = "nobody".to_owned();
    let made = store
        .bootstrap(
            &NewTenant {
                id: TenantId::from_u128(1),
                name: name.clone(),
            },
            &NewUser {
                id: UserId::from_u128(1),
                name,
            },
            clock.now(),
        )
        .await
        .expect("it answers");
    assert!(!made.created, "it is the server's tenant");
    let (tenant, owner) = (made.tenant, made.owner);
    let by = By::from(owner);
    let mut lanes = JoinSet::new();
    for lane in 0..SESSIONS {
        let (store, by) = (store.clone(), by);
        lanes.spawn(async move {
            let clock = SystemClock::new();
            for number in (lane..PEOPLE - 1).step_by(SESSIONS) {
                let id = UserId::generate(&clock, &OsEntropy);
                let name = format!("person-{number}");
                let code = NewSignInCode {
                    hash: Digest::of(name.as_bytes()),
                    expires_at: clock.now(),
                };
                let new = NewUser { id, name };
                let invited = store.invite(tenant, &new, Role::Member, &code, &by, clock.now());
                invited.await.expect("there is room");
                for session in 0..SESSIONS_EACH {
                    begin(&store, tenant, id, &format!("work {session}")).await;
                }
            }
            for number in (lane..OWN_SESSIONS).step_by(SESSIONS) {
                begin(&store, tenant, owner, &format!("work {number}")).await;
            }
        });
    }
    while let Some(lane) = lanes.join_next().await {
        lane.expect("it is stored");
    }
}

/// The first page of a list, the one behind 500 things, and a search without a hit, which looks at all.
async fn pages(gantry: &Gantry, database: &str, list: &str, watch: &Stopwatch) -> Vec<Figure> {
    let path = format!("/api/v1/{list}");
    let ask = async |query: &str| {
        let request = gantry.request("get", &format!("{path}?{query}"));
        let answer = request.bearer_auth(gantry.token()).send().await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), 200, "{path}?{query}");
        answer
            .json::<serde_json::Value>()
            .await
            .expect("it is whole")
    };
    let far = ask("limit=500").await["next"].as_str().map(str::to_owned);
    let far = far.expect("there are more");
    let whose = match list {
        "sessions" => "10,000 own sessions of 100,000",
        _ => "10,000 people",
    };
    let mut figures = Vec::new();
    for (what, query, found) in [
        ("the first page", "limit=50".to_owned(), 50),
        ("the page behind 500", format!("limit=50&after={far}"), 50),
        (
            "a search that finds one",
            "limit=50&search=9998".to_owned(),
            1,
        ),
    ] {
        let what = format!("{what} of {whose}, {database}, p95");
        let mut figure = Figure::new(what, Unit::Seconds, Goal::AtMost(0.010));
        for _ in 0..ROUNDS {
            let mut took = Vec::new();
            for _ in 0..REQUESTS {
                let (seconds, answer) = watch.time(ask(&query)).await;
                assert_eq!(
                    answer[list].as_array().map(Vec::len),
                    Some(found),
                    "{query}"
                );
                took.push(seconds);
            }
            figure.lone_round(percentile(&took, 0.95));
        }
        figures.push(figure);
    }
    figures
}
