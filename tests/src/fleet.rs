//! Many runners in this process: peers that speak the real protocol over a connection each, and
//! come back when they lose it, as the daemon does. They run nothing.
//!
//! It costs little, so that thousands fit beside a server; the server is a process of its own, and
//! its memory is its own.

mod route;

use std::{sync::Arc, time::Duration};

use proto::v1::server_frame;
use shared_api::CreateJoinToken;
use shared_types::{Entropy as _, OsEntropy};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{Instant, sleep},
};
use tonic::{Code, Status};

pub use route::{Route, connector};

use crate::{
    gantry::Gantry,
    peer::{Line, Over, Peer, PeerLink},
};

/// Runners that one join token may enrol.
const PER_TOKEN: usize = 1000;
/// Runners that enrol, or link for the first time, at once.
const AT_ONCE: usize = 32;
/// The ceiling of the first wait before a runner links again; it doubles to the last.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A link that lived this long was a good one.
const GOOD_LINK: Duration = Duration::from_secs(10);

/// Enrolled runners.
pub struct Fleet {
    route: Route,
    over: Over,
    idle: Vec<Peer>,
    running: JoinSet<()>,
    tally: watch::Sender<Tally>,
}

/// How the runners of a fleet are.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Those that hold a link which carries operations.
    pub linked: usize,
    /// What the server said to those that it refused; they do not try again.
    pub refused: Vec<String>,
    /// Links whose generation was not above that of the runner's last.
    pub went_back: usize,
    /// Attempts that failed and were tried again.
    pub failed: usize,
}

impl Fleet {
    /// Enrols this many runners with fleet tokens, whose links go over this.
    pub async fn enrol(gantry: &Gantry, over: Over, count: usize) -> Self {
        let route = Route::to(gantry);
        let mut idle = Vec::with_capacity(count);
        for first in (0..count).step_by(PER_TOKEN) {
            let uses = PER_TOKEN.min(count - first);
            let mut wish = CreateJoinToken::one("");
            wish.uses = Some(uses as u32);
            let token = gantry.client().create_join_token(&wish).await;
            let token = token.expect("a fleet token").token;
            let mut lanes = JoinSet::new();
            for lane in 0..AT_ONCE {
                let (route, token) = (route.clone(), token.clone());
                lanes.spawn(async move {
                    let channel = route.connect().await.expect("the server listens");
                    let mut enrolled = Vec::new();
                    for number in (lane..uses).step_by(AT_ONCE) {
                        let name = format!("fleet-{}", first + number);
                        let token = token.clone();
                        enrolled.push(Peer::enrol_over(channel.clone(), token, &name).await);
                    }
                    enrolled
                });
            }
            idle.extend(lanes.join_all().await.into_iter().flatten());
        }
        Self {
            route,
            over,
            idle,
            running: JoinSet::new(),
            tally: watch::Sender::new(Tally::default()),
        }
    }

    /// Links all of them, some at a time, and keeps them linked from then on.
    pub async fn link(&mut self) {
        let first_link = Arc::new(Semaphore::new(AT_ONCE));
        for peer in self.idle.drain(..) {
            let member = Member {
                peer,
                route: self.route.clone(),
                over: self.over,
                tally: self.tally.clone(),
                generation: 0,
            };
            self.running.spawn(member.run(Arc::clone(&first_link)));
        }
        self.until_linked(true).await;
    }

    /// Waits until all are linked or refused, or (`false`) until none is linked.
    pub async fn until_linked(&self, linked: bool) {
        let all = self.running.len();
        let mut tally = self.tally.subscribe();
        let settled = tally.wait_for(|tally| match linked {
            true => tally.linked + tally.refused.len() == all,
            false => tally.linked == 0,
        });
        settled.await.expect("the fleet holds the sender");
    }

    /// How they are now.
    pub fn tally(&self) -> Tally {
        self.tally.borrow().clone()
    }

    /// Cuts all links without a goodbye, for good.
    pub async fn vanish(&mut self) {
        self.running.shutdown().await;
    }
}

/// One runner.
struct Member {
    peer: Peer,
    route: Route,
    over: Over,
    tally: watch::Sender<Tally>,
    /// Of its last link.
    generation: u64,
}

impl Member {
    async fn run(mut self, first_link: Arc<Semaphore>) {
        let mut permit = Some(first_link.acquire_owned().await);
        let mut failures = 0;
        loop {
            let began = Instant::now();
            let linked = self.link().await;
            drop(permit.take());
            match linked {
                Ok((link, heartbeat_every)) => {
                    let _linked = Linked::new(&self.tally);
                    link.idle(heartbeat_every).await;
                }
                Err(refused) if is_final(refused.code()) => {
                    let reason = refused.to_string();
                    return self.tally.send_modify(|tally| tally.refused.push(reason));
                }
                Err(_) => self.tally.send_modify(|tally| tally.failed += 1),
            }
            let lived = began.elapsed();
            failures = if lived >= GOOD_LINK { 1 } else { failures + 1 };
            sleep(wait(failures)).await;
        }
    }

    async fn link(&mut self) -> Result<(PeerLink, Duration), Status> {
        let lost = |error: anyhow::Error| Status::unavailable(format!("{error:#}"));
        self.peer.move_to(self.route.connect().await.map_err(lost)?);
        if self.over == Over::WebSocket {
            self.peer.link_on(Line::WebSocket(self.route.clone()));
        }
        let (mut link, token) = self.peer.try_dial().await?;
        if self.over == Over::WebSocket {
            self.peer.hang_up();
        }
        self.peer.greet(&mut link, &token).await;
        match link.next().await? {
            Some(server_frame::Kind::Welcome(welcome)) => {
                if welcome.generation <= self.generation {
                    self.tally.send_modify(|tally| tally.went_back += 1);
                }
                self.generation = welcome.generation;
                let every = Duration::from_millis(welcome.heartbeat_every_ms.into());
                Ok((link, every))
            }
            other => Err(Status::unavailable(format!("no welcome: {other:?}"))),
        }
    }
}

/// Counts a link for as long as it is held.
struct Linked<'a>(&'a watch::Sender<Tally>);

impl<'a> Linked<'a> {
    fn new(tally: &'a watch::Sender<Tally>) -> Self {
        tally.send_modify(|tally| tally.linked += 1);
        Self(tally)
    }
}

impl Drop for Linked<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|tally| tally.linked -= 1);
    }
}

/// The codes of a refusal, which a test wants to know of.
fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::Unauthenticated | Code::PermissionDenied | Code::FailedPrecondition
    )
}

/// The daemon's waits: full jitter below a ceiling that doubles.
fn wait(failures: u32) -> Duration {
    let ceiling = FIRST_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(16));
    let mut random = [0; 4];
    OsEntropy.fill(&mut random);
    let share = f64::from(u32::from_be_bytes(random)) / f64::from(u32::MAX);
    ceiling.min(LONGEST_WAIT).mul_f64(share)
}
