//! Durable turns per second of one database file: the bare cycle of three synced commits (message,
//! claim, end), one turn at a time and many at a time, which share commits.
//!
//! `cargo run --release -p server-store --example turn_cycles -- FOLDER [AT_ONCE] [TURNS]`
//! FOLDER lies on the disk to be measured. Both take turns, so that both meet the same host.

use std::{path::PathBuf, time::Duration};

use server_store::{IfRunning, Input, NewSession, NewTenant, NewUser, Store};
use shared_types::{
    Clock, Event, OsEntropy, ReplicaId, SessionId, SystemClock, TenantId, TurnId, UserId,
    event::{TurnOutcome, TurnSettings},
};
use tokio::task::JoinSet;

const ROUNDS: usize = 5;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("say which folder")?;
    let mut number = |or: usize| arguments.next().map_or(Ok(or), |text| text.parse());
    let (at_once, turns) = (number(256)?, number(2048)?);
    let path = PathBuf::from(folder).join("turn-cycles.db");
    let bench = Bench::new(Store::open(&path).await?).await?;
    let clock = SystemClock::new();
    for _ in 0..ROUNDS {
        let serial = bench.cycles(1, turns.div_ceil(32), &clock).await?;
        let shared = bench.cycles(at_once, turns, &clock).await?;
        println!(
            "one at a time {serial:.0}/s, {at_once} at a time {shared:.0}/s, ratio {:.1}",
            shared / serial
        );
    }
    Ok(())
}

#[derive(Clone)]
struct Bench {
    store: Store,
    tenant: TenantId,
    owner: UserId,
}

impl Bench {
    async fn new(store: Store) -> Result<Self, Failure> {
        let tenant = NewTenant {
            id: TenantId::from_u128(1),
            name: "bench".to_owned(),
        };
        let owner = NewUser {
            id: UserId::from_u128(1),
            name: "bench".to_owned(),
        };
        let now = SystemClock::new().now();
        let made = store.bootstrap(&tenant, &owner, now).await?;
        Ok(Self {
            store,
            tenant: made.tenant,
            owner: made.owner,
        })
    }

    /// Turns per second of `lanes` sessions side by side.
    async fn cycles(
        &self,
        lanes: usize,
        turns: usize,
        clock: &SystemClock,
    ) -> Result<f64, Failure> {
        let mut sessions = Vec::new();
        for _ in 0..lanes {
            let session = NewSession {
                id: SessionId::generate(clock, &OsEntropy),
                user: self.owner,
                title: String::new(),
                model: "none".to_owned(),
                pin: None,
                directory: String::new(),
            };
            let made = self
                .store
                .create_session(self.tenant, &session, u64::MAX, clock.now());
            sessions.push(made.await?.id);
        }
        let began = clock.monotonic();
        let mut running = JoinSet::new();
        for session in sessions {
            let bench = self.clone();
            let each = turns.div_ceil(lanes);
            running.spawn(async move {
                for _ in 0..each {
                    bench.turn(session).await?;
                }
                Ok::<_, Failure>(each)
            });
        }
        let mut done = 0;
        while let Some(lane) = running.join_next().await {
            done += lane??;
        }
        let took: Duration = clock.monotonic() - began;
        Ok(done as f64 / took.as_secs_f64())
    }

    async fn turn(&self, session: SessionId) -> Result<(), Failure> {
        let (clock, tenant, store) = (SystemClock::new(), self.tenant, &self.store);
        let input = Input {
            turn: TurnId::generate(&clock, &OsEntropy),
            by: self.owner,
            client_id: None,
            text: "go".to_owned(),
        };
        store
            .send_input(tenant, session, &input, clock.now())
            .await?;
        let usual = TurnSettings {
            model: "none".to_owned(),
            language: None,
            steps: 50,
        };
        let (replica, refuse) = (ReplicaId::from_u128(1), IfRunning::Refuse);
        let claimed = store.claim_turn(tenant, session, replica, refuse, &usual, clock.now());
        let claimed = claimed.await?.ok_or("no turn waits")?;
        let end = [Event::TurnEnded {
            turn: claimed.turn.id,
            outcome: TurnOutcome::Completed,
            reason: None,
        }];
        let epoch = claimed.epoch;
        store
            .append(tenant, session, epoch, &end, clock.now())
            .await?;
        Ok(())
    }
}
