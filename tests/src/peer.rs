//! A runner that says whatever a test wants: it enrols with a key of its own and speaks the real
//! protocol frame by frame, also wrongly.

mod line;
mod raw;

use std::{sync::Mutex, time::Duration};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use futures_util::{StreamExt as _, TryStreamExt as _};
use line::FromServer;
use proto::{
    PROTOCOL_VERSION,
    agreement::Ephemeral,
    enrolling::{self, Envelope},
    sealing::{KeyPlace, LinkKeys, Opener, Sealer},
    signing,
    v1::{
        self, enrol_answer::Answer, enrolment_client::EnrolmentClient, runner_frame, server_frame,
    },
};
use shared_api::CreateJoinToken;
use shared_types::{Entropy as _, Incarnation, JournalId, OsEntropy, RunnerId, SandboxId};
use tokio::{
    sync::mpsc,
    time::{interval, timeout},
};
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint},
};

pub use line::{Line, Over, Socket, Stream, websocket};
pub use raw::{call_raw, link_raw, messages_raw};

use crate::gantry::{Gantry, PATIENCE};

/// Frames that wait for the connection: enough to send many at once.
const FRAMES: usize = 256;

/// An Ed25519 key.
pub struct Key(Ed25519KeyPair);

impl Key {
    /// A new one.
    pub fn generate() -> Self {
        let mut seed = [0; 32];
        OsEntropy.fill(&mut seed);
        Self(Ed25519KeyPair::from_seed_unchecked(&seed).expect("32 bytes are a seed"))
    }

    /// The public half.
    pub fn public(&self) -> Vec<u8> {
        self.0.public_key().as_ref().to_vec()
    }

    /// Signs a message of [`signing`].
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }
}

/// A connection that speaks gRPC in plain text.
pub async fn connect(url: &str) -> Channel {
    let endpoint = Endpoint::from_shared(url.to_owned()).expect("an address");
    endpoint.connect().await.expect("the server listens")
}

/// An enrolled runner without a daemon.
pub struct Peer {
    /// What it proves itself with.
    pub key: Key,
    /// Its id.
    pub runner: RunnerId,
    channel: Channel,
    line: Line,
    incarnation: Incarnation,
    /// The newest one that the server gave, and its signature.
    join_state: Mutex<(u64, Vec<u8>)>,
}

impl Peer {
    /// Enrols with a token of its own, and opens its links over this.
    pub async fn enrol_for(over: Over, gantry: &Gantry, name: &str) -> Self {
        let mut peer = Self::enrol(gantry, name).await;
        peer.line = Line::to(over, gantry.url()).await;
        peer
    }

    /// Enrols with a token of its own.
    pub async fn enrol(gantry: &Gantry, name: &str) -> Self {
        let wish = CreateJoinToken::one(name);
        let token = gantry.client().create_join_token(&wish).await;
        let token = token.expect("a join token").token;
        Self::enrol_over(connect(gantry.url()).await, token, "").await
    }

    /// Enrols over this connection; a token for one runner knows the name itself.
    pub async fn enrol_over(channel: Channel, token: String, name: &str) -> Self {
        let enrolled = Self::try_enrol_over(channel, token, name).await;
        enrolled.expect("it is enrolled")
    }

    /// The same.
    ///
    /// # Errors
    /// What the server says where it does not enrol it.
    pub async fn try_enrol_over(
        channel: Channel,
        token: String,
        name: &str,
    ) -> Result<Self, Status> {
        let key = Key::generate();
        let identity = identify(&channel).await.expect("the server says who it is");
        let challenge = &identity.challenge;
        let envelope = Envelope::to(challenge, &identity.sealing_key, &OsEntropy);
        let envelope = envelope.expect("a key to seal to");
        let signed = signing::enrol(challenge, envelope.ephemeral_key(), &token);
        let (request, reply_key) = envelope.seal(&v1::EnrolContent {
            public_key: key.public(),
            signature: key.sign(&signed),
            join_token: token,
            name: name.to_owned(),
            ..v1::EnrolContent::default()
        });
        let reply = EnrolmentClient::new(channel.clone()).enrol(request).await?;
        let answer = reply_key.open(&reply.into_inner());
        let runner = match answer.expect("the server sealed it") {
            Answer::Enrolled(enrolled) => enrolled.runner,
            Answer::Refused(refused) => {
                return Err(Status::new(Code::from_i32(refused.code), refused.message));
            }
        };
        let mut journal = [0; 16];
        OsEntropy.fill(&mut journal);
        Ok(Self {
            key,
            runner: runner.parse().expect("a runner's id"),
            line: Line::Grpc(channel.clone()),
            channel,
            join_state: Mutex::default(),
            incarnation: Incarnation {
                journal: JournalId::from_u128(u128::from_be_bytes(journal)),
                boot: "boot".to_owned(),
            },
        })
    }

    /// A fresh access token.
    pub async fn access_token(&self) -> String {
        self.try_access_token().await.expect("it is let in")
    }

    /// A fresh access token.
    ///
    /// # Errors
    /// What the server says where it does not let it in.
    pub async fn try_access_token(&self) -> Result<String, Status> {
        let identity = identify(&self.channel).await?;
        let (join_state, join_state_signature) = self.join_state.lock().expect("no panic").clone();
        let (challenge, audience) = (identity.challenge, identity.audience);
        let signed = signing::authenticate(&challenge, &audience, self.runner, join_state);
        let request = v1::AuthenticateRequest {
            runner: self.runner.to_string(),
            signature: self.key.sign(&signed),
            challenge,
            join_state,
            join_state_signature,
        };
        let mut client = EnrolmentClient::new(self.channel.clone());
        let reply = client.authenticate(request).await?.into_inner();
        *self.join_state.lock().expect("no panic") = (reply.join_state, reply.join_state_signature);
        Ok(reply.access_token)
    }

    /// Speaks over this connection from now on.
    pub fn move_to(&mut self, channel: Channel) {
        self.line = Line::Grpc(channel.clone());
        self.channel = channel;
    }

    /// Opens its links there from now on.
    pub fn link_on(&mut self, line: Line) {
        self.line = line;
    }

    /// Lets go of the connection for calls: the next one must be given.
    pub fn hang_up(&mut self) {
        self.channel = Endpoint::from_static("http://127.0.0.1:1").connect_lazy();
    }

    /// A link on its own connection, up to the server's challenge.
    pub async fn dial(&self) -> (PeerLink, String) {
        self.try_dial().await.expect("it is let in")
    }

    /// A link on its own connection, up to the server's challenge.
    ///
    /// # Errors
    /// What the server says where it does not let it in.
    pub async fn try_dial(&self) -> Result<(PeerLink, String), Status> {
        let token = self.try_access_token().await?;
        let link = self.try_dial_with(&token).await?;
        Ok((link, token))
    }

    /// The same with an access token from before.
    ///
    /// # Errors
    /// What the server says where it does not let it in.
    pub async fn try_dial_with(&self, token: &str) -> Result<PeerLink, Status> {
        PeerLink::dial(&self.line, token).await
    }

    /// A link that carries operations, and its generation.
    pub async fn link(&self) -> (PeerLink, u64) {
        let (mut link, token) = self.dial().await;
        self.greet(&mut link, &token).await;
        match link.next().await {
            Ok(Some(server_frame::Kind::Welcome(welcome))) => (link, welcome.generation),
            other => panic!("no welcome: {other:?}"),
        }
    }

    /// Answers the challenge as it should.
    pub async fn greet(&self, link: &mut PeerLink, token: &str) {
        let proof = self.proof(link, token, self.hello());
        link.send(runner_frame::Kind::Proof(proof)).await;
    }

    /// What it says of itself, with everything right.
    pub fn hello(&self) -> v1::Hello {
        let name = "workspace".to_owned();
        v1::Hello {
            protocol_version: PROTOCOL_VERSION,
            software_version: "0.0.1".to_owned(),
            incarnation: Some((&self.incarnation).into()),
            journal_sequence: 0,
            capabilities: Some(v1::Capabilities {
                os: "linux".to_owned(),
                architecture: "x86_64".to_owned(),
                hostname: "peer".to_owned(),
                sandboxes: vec![v1::Sandbox {
                    sandbox: SandboxId::derive(self.runner, &name).to_string(),
                    name,
                    root: "/nowhere".to_owned(),
                    isolation: "none".to_owned(),
                    problem: String::new(),
                }],
                features: Vec::new(),
                pool: None,
                ceiling: 0,
            }),
            inventory: Vec::new(),
        }
    }

    /// A first frame with this hello; what follows on the link is sealed.
    pub fn proof(&self, link: &mut PeerLink, token: &str, hello: v1::Hello) -> Box<v1::Proof> {
        let ours = Ephemeral::generate(&OsEntropy);
        let mut proof = Box::new(v1::Proof {
            signature: Vec::new(),
            protocol_version: PROTOCOL_VERSION,
            ephemeral_key: ours.public(),
            hello: None,
        });
        let keys = LinkKeys::of_runner(self.runner, ours, &link.challenge);
        let keys = keys.expect("a public key");
        let kind = Some(runner_frame::Kind::Hello(Box::new(hello)));
        let hello = v1::RunnerFrame { kind };
        proof.hello = Some(keys.from_runner.seal_first(&hello));
        link.key.put(keys.from_runner);
        link.opener = Some(Opener::new(keys.from_server));
        self.sign(link, token, &mut proof);
        proof
    }

    /// Signs a first frame that was changed.
    pub fn sign(&self, link: &PeerLink, token: &str, proof: &mut v1::Proof) {
        let signed = signing::proof(token, &link.challenge, proof);
        proof.signature = self.key.sign(&signed);
    }
}

/// One link, from the runner's end. Dropping it hangs up.
pub struct PeerLink {
    /// What the server wants to have answered; nobody looks whether it signed it.
    pub challenge: v1::Challenge,
    key: KeyPlace<v1::RunnerFrame>,
    sealer: Mutex<Sealer<v1::RunnerFrame>>,
    /// What the server says is opened with, from the proof on.
    opener: Option<Opener<v1::ServerFrame>>,
    to_server: mpsc::Sender<v1::RunnerFrame>,
    from_server: FromServer,
}

impl PeerLink {
    /// Opens a link with this access token and waits for the challenge.
    ///
    /// # Errors
    /// What the server says where it does not let it in.
    pub async fn dial(line: &Line, token: &str) -> Result<Self, Status> {
        let (to_server, frames) = mpsc::channel(FRAMES);
        let key = KeyPlace::default();
        let mut link = Self {
            challenge: v1::Challenge::default(),
            sealer: Mutex::new(Sealer::new(key.clone())),
            opener: None,
            key,
            to_server,
            from_server: line.open(token, frames).await?,
        };
        match link.next().await? {
            Some(server_frame::Kind::Challenge(challenge)) => link.challenge = challenge,
            Some(other) => panic!("no challenge: {other:?}"),
            None => return Err(Status::unavailable("the server hung up")),
        }
        Ok(link)
    }

    /// Sends a frame, sealed once there is a key; returns whether the link took it.
    pub fn send(&self, kind: runner_frame::Kind) -> impl Future<Output = bool> + use<> {
        self.send_as_it_is(self.seal(kind))
    }

    /// The next frame that the runner says, sealed once there is a key: to be sent next.
    pub fn seal(&self, kind: runner_frame::Kind) -> v1::RunnerFrame {
        let frame = v1::RunnerFrame { kind: Some(kind) };
        let sealed = self.sealer.lock().expect("no panic").seal(frame.clone());
        sealed.unwrap_or(frame)
    }

    /// Sends a frame as it is; returns whether the link took it.
    pub fn send_as_it_is(&self, frame: v1::RunnerFrame) -> impl Future<Output = bool> + use<> {
        let to_server = self.to_server.clone();
        async move { to_server.send(frame).await.is_ok() }
    }

    /// The next frame that is not a heartbeat; nothing at the end of the link.
    ///
    /// # Errors
    /// The status with which the server ended it.
    ///
    /// # Panics
    /// If nothing comes in time, or something that the server did not seal.
    pub async fn next(&mut self) -> Result<Option<server_frame::Kind>, Status> {
        let next = async {
            loop {
                let Some(frame) = self.from_server.try_next().await? else {
                    return Ok(None);
                };
                let frame = match &mut self.opener {
                    Some(opener) => opener.open(frame).expect("the server's next frame"),
                    None => frame,
                };
                if !matches!(frame.kind, Some(server_frame::Kind::Heartbeat(_))) {
                    return Ok(frame.kind);
                }
            }
        };
        // Around the loop: heartbeats alone are not what is waited for.
        timeout(PATIENCE, next).await.expect("a frame in time")
    }

    /// Says every so often that the runner lives, and does nothing else until the link ends.
    pub async fn idle(mut self, heartbeat_every: Duration) {
        let mut beats = interval(heartbeat_every);
        loop {
            tokio::select! {
                _ = beats.tick() => {
                    self.send(runner_frame::Kind::Heartbeat(v1::Heartbeat::default())).await;
                }
                frame = self.from_server.next() => if !matches!(frame, Some(Ok(_))) {
                    return;
                }
            }
        }
    }

    /// The next operation that the runner is asked for. A survey is answered: it found nothing.
    pub async fn operation(&mut self) -> v1::Operation {
        loop {
            match self.next().await {
                Ok(Some(server_frame::Kind::Operation(operation))) => match &operation.request {
                    Some(v1::operation::Request::Survey(_)) => {
                        self.has_surveyed(operation.operation).await;
                    }
                    _ => return *operation,
                },
                Ok(Some(_)) => {}
                end => panic!("the link ended: {end:?}"),
            }
        }
    }

    async fn has_surveyed(&self, operation: String) {
        let accepted = runner_frame::Kind::Accepted(v1::Accepted {
            operation: operation.clone(),
            journal_sequence: 0,
        });
        self.send(accepted).await;
        let outcome = Some(v1::ended::Outcome::Surveyed(v1::Surveyed::default()));
        let ended = runner_frame::Kind::Ended(v1::Ended { operation, outcome });
        self.send(ended).await;
    }

    /// Reads to the end of the link: the reason that the server gave, by a goodbye or a status.
    ///
    /// # Panics
    /// If it gave none.
    pub async fn reason(&mut self) -> String {
        loop {
            match self.next().await {
                Ok(Some(server_frame::Kind::Goodbye(goodbye))) => return goodbye.reason,
                Ok(Some(_)) => {}
                Ok(None) => panic!("the server ended the link without a word"),
                Err(status) => return format!("{:?}: {}", status.code(), status.message()),
            }
        }
    }
}

async fn identify(channel: &Channel) -> Result<v1::IdentifyReply, Status> {
    let mut nonce = vec![0; 32];
    OsEntropy.fill(&mut nonce);
    let request = v1::IdentifyRequest {
        nonce,
        version: enrolling::VERSION,
    };
    let mut client = EnrolmentClient::new(channel.clone());
    Ok(client.identify(request).await?.into_inner())
}
