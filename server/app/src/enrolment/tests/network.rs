//! A runner, or two with one folder, and two servers with one database, behind a network that delays, loses,
//! doubles, reorders and damages whatever it carries, while the daemon is killed and a server restarted.
//! Everything is drawn from a seed. Without a copy nothing of it may lock the runner; with one, the lock comes.

use proto::v1::AuthenticateReply;

use super::*;

/// Draws of one network.
const STEPS: u64 = 150;

/// Servers with one database; the first one is restarted now and then.
const SERVERS: usize = 2;

/// Networks that are drawn.
const SEEDS: u64 = 25;

/// Good connects of each of two that share a folder within which one of them is found, where they use one server.
const FOUND_WITHIN: usize = 3;

/// What is under way.
#[derive(Clone)]
enum Packet {
    Identify,
    Identified(v1::IdentifyReply),
    Authenticate(AuthenticateRequest),
    Authenticated(AuthenticateReply),
    Link(String),
}

/// A packet, and the attempt that it belongs to.
#[derive(Clone)]
struct Sent {
    daemon: usize,
    attempt: u64,
    /// Which of the servers it is sent to, or comes from.
    server: usize,
    packet: Packet,
}

/// A daemon with its folder.
#[derive(Clone, Default)]
struct Daemon {
    /// What is on its disk.
    stored: (u64, Vec<u8>),
    /// The attempt that it makes: what belongs to another one never reaches it.
    attempt: u64,
    /// The challenge of this attempt, once it has signed it.
    challenge: Option<Vec<u8>>,
    /// Links that it made.
    links: usize,
}

struct World {
    /// Gone only while it is restarted.
    fixture: Option<Fixture>,
    /// The other server.
    other: Enrolment,
    /// True if a proxy gives each request to any of the servers.
    has_proxy: bool,
    peer: Peer,
    daemons: Vec<Daemon>,
    under_way: Vec<Sent>,
    attempts: u64,
    dice: u64,
}

impl World {
    async fn new(seed: u64, daemons: usize) -> Self {
        let fixture = Fixture::practice().await;
        let peer = Peer::enrol(&fixture).await;
        let other = other_server(&fixture).await;
        Self {
            fixture: Some(fixture),
            other,
            has_proxy: true,
            peer,
            daemons: vec![Daemon::default(); daemons],
            under_way: Vec::new(),
            attempts: 0,
            dice: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    /// A number below `sides` (xorshift64*).
    fn roll(&mut self, sides: usize) -> usize {
        self.dice ^= self.dice >> 12;
        self.dice ^= self.dice << 25;
        self.dice ^= self.dice >> 27;
        let drawn = self.dice.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        drawn as usize % sides
    }

    /// A daemon begins a new attempt: after a loss, a timeout, or its death.
    fn begin(&mut self, daemon: usize, server: usize) {
        self.attempts += 1;
        let attempt = self.attempts;
        self.daemons[daemon].attempt = attempt;
        self.daemons[daemon].challenge = None;
        self.send((daemon, attempt, server), Packet::Identify);
    }

    fn send(&mut self, (daemon, attempt, server): (usize, u64, usize), packet: Packet) {
        self.under_way.push(Sent {
            daemon,
            attempt,
            server,
            packet,
        });
    }

    /// Something happens; returns whether the runner is locked.
    async fn step(&mut self) -> bool {
        let of_all = self.daemons.len();
        match self.roll(20) {
            0 | 1 => {
                let (daemon, server) = (self.roll(of_all), self.roll(SERVERS));
                self.begin(daemon, server);
            }
            2 => drop(self.take()),
            3 => {
                if let Some(sent) = self.take() {
                    self.under_way.extend([sent.clone(), sent]);
                }
            }
            4 => {
                if let Some(mut sent) = self.take() {
                    self.damage(&mut sent.packet);
                    self.under_way.push(sent);
                }
            }
            5 if self.roll(4) == 0 => self.restart().await,
            _ => match self.take() {
                Some(sent) => return self.deliver(sent).await,
                None => {
                    let (daemon, server) = (self.roll(of_all), self.roll(SERVERS));
                    self.begin(daemon, server);
                }
            },
        }
        false
    }

    /// Any of those that are under way, so that they come in any order and at any time.
    fn take(&mut self) -> Option<Sent> {
        let count = self.under_way.len();
        (count > 0).then(|| {
            let which = self.roll(count);
            self.under_way.swap_remove(which)
        })
    }

    fn damage(&mut self, packet: &mut Packet) {
        let (which, bit) = (self.roll(5), 1 << self.roll(8));
        let flip = |bytes: &mut Vec<u8>| {
            if let Some(byte) = bytes.last_mut() {
                *byte ^= bit;
            }
        };
        match (packet, which) {
            (Packet::Identified(reply), 0 | 1) => flip(&mut reply.challenge),
            (Packet::Identified(reply), _) => flip(&mut reply.signature),
            (Packet::Authenticate(ask), 0) => flip(&mut ask.challenge),
            (Packet::Authenticate(ask), 1) => flip(&mut ask.signature),
            (Packet::Authenticate(ask), 2) => flip(&mut ask.join_state_signature),
            (Packet::Authenticate(ask), _) => ask.join_state ^= u64::from(bit),
            (Packet::Authenticated(reply), 0) => flip(&mut reply.signature),
            (Packet::Authenticated(reply), 1) => flip(&mut reply.join_state_signature),
            (Packet::Authenticated(reply), _) => reply.join_state ^= u64::from(bit),
            (Packet::Link(token), _) => drop(token.pop()),
            (Packet::Identify, _) => {}
        }
    }

    async fn restart(&mut self) {
        if let Some(fixture) = self.fixture.take() {
            let fixture = fixture.restarted().await;
            self.other = other_server(&fixture).await;
            self.fixture = Some(fixture);
        }
    }

    fn fixture(&self) -> &Fixture {
        self.fixture.as_ref().expect("it is not being restarted")
    }

    /// Where the next request of an attempt goes, whose last answer came from this server.
    fn next_server(&mut self, last: usize) -> usize {
        match self.has_proxy {
            true => self.roll(SERVERS),
            false => last,
        }
    }

    fn server(&self, which: usize) -> &Enrolment {
        match which {
            0 => &self.fixture().app.enrolment,
            _ => &self.other,
        }
    }

    /// Something arrives; returns whether the runner is locked.
    async fn deliver(&mut self, sent: Sent) -> bool {
        let Sent {
            daemon,
            attempt,
            server,
            packet,
        } = sent;
        let back = (daemon, attempt, server);
        let next = (daemon, attempt, self.next_server(server));
        match packet {
            Packet::Identify => {
                let ask = v1::IdentifyRequest {
                    nonce: vec![1; 32],
                    version: enrolling::VERSION,
                };
                let reply = self.server(server).identify(&ask, None).expect("a nonce");
                self.send(back, Packet::Identified(reply));
            }
            Packet::Authenticate(ask) => match self.server(server).authenticate(&ask).await {
                Ok(reply) => self.send(back, Packet::Authenticated(reply)),
                Err(refused) => return refused.dismissal.is_some(),
            },
            Packet::Link(token) => {
                let Some(claims) = self.server(server).check_link_token(&token) else {
                    return false;
                };
                let store = &self.fixture().app.store;
                let used = store.use_join_state(claims.tenant, claims.runner, claims.join_state);
                if used.await.expect("it answers") {
                    self.daemons[daemon].links += 1;
                }
            }
            // What belongs to an earlier attempt, or comes twice, reaches nobody.
            _ if self.daemons[daemon].attempt != attempt => {}
            Packet::Identified(reply) if self.daemons[daemon].challenge.is_none() => {
                let signed = signing::identify(&[1; 32], &reply);
                let key = self.server(server).identity_key();
                if verifies(&key, &signed, &reply.signature) {
                    let (state, signature) = self.daemons[daemon].stored.clone();
                    let ask = self.signs(&reply, state, signature);
                    self.daemons[daemon].challenge = Some(reply.challenge);
                    self.send(next, Packet::Authenticate(ask));
                }
            }
            Packet::Authenticated(reply) => {
                let key = self.server(server).identity_key();
                let daemon_ = &mut self.daemons[daemon];
                let Some(challenge) = &daemon_.challenge else {
                    return false;
                };
                let signed = signing::authenticated(challenge, self.peer.runner, &reply);
                if verifies(&key, &signed, &reply.signature) {
                    daemon_.stored = (reply.join_state, reply.join_state_signature);
                    self.send(next, Packet::Link(reply.access_token));
                }
            }
            Packet::Identified(_) => {}
        }
        false
    }

    fn signs(
        &self,
        identified: &v1::IdentifyReply,
        join_state: u64,
        join_state_signature: Vec<u8>,
    ) -> AuthenticateRequest {
        let (challenge, audience) = (identified.challenge.clone(), &identified.audience);
        let signed = signing::authenticate(&challenge, audience, self.peer.runner, join_state);
        AuthenticateRequest {
            runner: self.peer.runner.to_string(),
            signature: self.peer.key.sign(&signed),
            challenge,
            join_state,
            join_state_signature,
            address: Some(ADDRESS),
        }
    }

    /// The network does no harm any more to one daemon's next attempt, whatever is still under way:
    /// returns whether the runner is locked.
    async fn connects_well(&mut self, daemon: usize) -> bool {
        let before = self.daemons[daemon].links;
        while self.daemons[daemon].links == before {
            let server = self.next_server(0);
            self.begin(daemon, server);
            let attempt = self.attempts;
            while let Some(next) = self
                .under_way
                .iter()
                .position(|sent| sent.attempt == attempt)
            {
                let sent = self.under_way.swap_remove(next);
                if self.deliver(sent).await {
                    return true;
                }
            }
        }
        false
    }
}

/// Another process with the same keys on the same database.
async fn other_server(fixture: &Fixture) -> Enrolment {
    let inner = &*fixture.app.enrolment.inner;
    let key = |name| SigningKey::load(&fixture.folder().join(name)).expect("a key");
    let keys = ServerKeys {
        identity: key("identity.pem"),
        link_keys: LinkKeys::new(key("link.pem")),
    };
    let mut salt = [0; 32];
    inner.entropy.fill(&mut salt);
    let this = ThisReplica {
        id: ReplicaId::generate(&*inner.clock, &*inner.entropy),
        place: "elsewhere".to_owned(),
        address: None,
        version: "1.2.3".to_owned(),
        identity: Digest::of(&keys.identity.public()),
        challenge_salt: salt.into(),
    };
    let renewed = inner
        .store
        .renew_replica(&this, None, inner.clock.now())
        .await;
    renewed.expect("it answers");
    Enrolment::new(
        inner.store.clone(),
        inner.links.clone(),
        inner.clock.clone(),
        inner.entropy.clone(),
        &this,
        keys,
        inner.refusals.clone(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_copy_no_network_locks_a_runner() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, 1).await;
        for step in 0..STEPS {
            assert!(!world.step().await, "seed {seed}, step {step}");
        }
        for has_proxy in [false, true] {
            world.has_proxy = has_proxy;
            assert!(!world.connects_well(0).await, "seed {seed}");
        }
        // All that was held back comes at last.
        while let Some(sent) = world.take() {
            assert!(!world.deliver(sent).await, "seed {seed}, late");
        }
        assert!(!world.connects_well(0).await, "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_share_a_folder_and_go_on_connecting_one_is_found() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, 1).await;
        for _ in 0..STEPS / 2 {
            assert!(!world.step().await, "seed {seed}");
        }
        let copy = world.daemons[0].clone();
        world.daemons.push(copy);
        let mut found = false;
        for _ in 0..STEPS / 2 {
            found = found || world.step().await;
        }
        world.has_proxy = false;
        for _ in 0..FOUND_WITHIN {
            for daemon in [0, 1] {
                found = found || world.connects_well(daemon).await;
            }
        }
        assert!(found, "seed {seed}");
    }
}
