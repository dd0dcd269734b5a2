//! The runner's side of enrolment: identify the server, enrol, authenticate
//! (docs/internals/contracts.md#b-enrolment-and-trust).
//!
//! The server proves its identity first, with a signature over our nonce and over the certificate
//! that it presents. If that is the certificate of this connection, nothing stands between. If it
//! is not, a proxy ends TLS. Then the platform's roots must vouch for the proxy, and the server
//! must prove itself again behind it. Only then is anything secret sent, over that connection. It
//! is sealed to a key that the identity signed, so that the proxy cannot read it.

use std::{collections::HashMap, fmt, net::SocketAddr, time::Duration};

use proto::{
    dismissal,
    enrolling::{self, Envelope},
    http1, signing,
    v1::{self, enrol_answer::Answer, enrolment_client::EnrolmentClient},
};
use shared_types::{Entropy, RunnerId, Token, limits};
use tokio::time::timeout;
use tonic::{Code, Response, Status, transport::Channel};

use crate::{
    connection::{
        Accept, ConnectError, MAX_ANSWER_BYTES, Offer, Route, ServerConnection, Transport, Wire,
        heard,
    },
    home::{Home, HomeError, JoinState},
    key::{RunnerKey, ServerIdentity},
    server_url::ServerUrl,
};

/// Time for one call.
const CALL_WITHIN: Duration = Duration::from_secs(20);

/// A connection whose other end proved to be the server, with a challenge of it.
pub(crate) struct Proven {
    /// The wire for further calls over the same connection.
    pub(crate) wire: Wire,
    /// SHA-256 of the certificate that the identity vouched for; `None` where the platform's
    /// roots did, or there is no TLS.
    pub(crate) certificate: Option<[u8; 32]>,
    pub(crate) reached: Reached,
    challenge: Vec<u8>,
    audience: String,
    /// The key to which an enrolment is sealed.
    sealing_key: Vec<u8>,
}

/// The endpoint of the server at which a connection ends.
#[derive(Debug, Clone)]
pub(crate) struct Reached {
    pub(crate) server: ServerUrl,
    /// The address that answered there.
    pub(crate) address: SocketAddr,
    /// The transport of a link over it.
    pub(crate) transport: Transport,
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = self.transport.name();
        write!(f, "{} ({}) by {transport}", self.server, self.address)
    }
}

/// A runner's description of itself when it enrols.
#[derive(Debug, Clone, Default)]
pub(crate) struct Introduction {
    pub(crate) name: String,
    pub(crate) labels: HashMap<String, String>,
    pub(crate) hostname: String,
}

impl Proven {
    /// Connects, and holds the other end to the server's identity. Where gRPC may be what does not
    /// pass, because it is not answered as a Gantry server would, it is left for HTTP/1.1.
    pub(crate) async fn connect(
        route: &Route,
        identity: &ServerIdentity,
        entropy: &dyn Entropy,
    ) -> Result<Self, EnrolmentError> {
        match Self::by(route, route.offer, identity, entropy).await {
            Err(error) if route.offer == Offer::Either && error.may_be_the_way() => {
                let plainer = Offer::Only(Transport::WebSocket);
                match Self::by(route, plainer, identity, entropy).await {
                    Err(neither) if neither.may_be_the_way() => Err(error),
                    reached => reached,
                }
            }
            reached => reached,
        }
    }

    async fn by(
        route: &Route,
        offer: Offer,
        identity: &ServerIdentity,
        entropy: &dyn Entropy,
    ) -> Result<Self, EnrolmentError> {
        let url = &route.url;
        let mut connection = ServerConnection::open(route, Accept::Any, offer).await?;
        let reply = identify(&mut connection.wire, url, identity, entropy).await?;
        let at_the_other_end = connection.certificate;
        let Some(seen) = at_the_other_end else {
            return Ok(Self::of(url, connection, reply));
        };
        if reply.certificate_sha256 == seen {
            return Ok(Self::of(url, connection, reply));
        }
        let mut behind_proxy = ServerConnection::open(route, Accept::PlatformRoots, offer)
            .await
            .map_err(EnrolmentError::Interposed)?;
        let reply = identify(&mut behind_proxy.wire, url, identity, entropy).await?;
        Ok(Self::of(url, behind_proxy, reply))
    }

    /// Spends the join token: the server knows the runner afterwards, or nothing has changed. What
    /// stands between the two learns nothing of it, and cannot answer in the server's place.
    pub(crate) async fn enrol(
        mut self,
        token: &Token,
        key: &RunnerKey,
        introduction: Introduction,
        entropy: &dyn Entropy,
    ) -> Result<(RunnerId, String), EnrolmentError> {
        let envelope = Envelope::to(&self.challenge, &self.sealing_key, entropy);
        let envelope = envelope.ok_or(EnrolmentError::Nonsense("a key to seal the token to"))?;
        let text = token.reveal();
        let signed = signing::enrol(&self.challenge, envelope.ephemeral_key(), &text);
        let (request, reply_key) = envelope.seal(&v1::EnrolContent {
            public_key: key.public().to_vec(),
            signature: key.sign(&signed),
            join_token: text,
            name: introduction.name,
            labels: introduction.labels,
            hostname: introduction.hostname,
            software_version: env!("CARGO_PKG_VERSION").to_owned(),
        });
        let reply = in_time(self.wire.enrol(request)).await?;
        let answer = reply_key.open(&reply);
        match answer.map_err(|_| EnrolmentError::Altered)? {
            Answer::Enrolled(enrolled) => {
                let runner = enrolled.runner.parse();
                let runner = runner.map_err(|_| EnrolmentError::Nonsense("a runner id"))?;
                match limits::is_name(&enrolled.name) {
                    true => Ok((runner, enrolled.name)),
                    false => Err(EnrolmentError::Nonsense("a runner's name")),
                }
            }
            Answer::Refused(refused) => {
                let code = Code::from_i32(refused.code);
                let refusal = Status::new(code, refused.message);
                Err(EnrolmentError::Refused(heard(refusal)))
            }
        }
    }

    /// Proves that this is the runner that enrolled; returns an access token for one link. The
    /// join state that comes with it is on disk before the token can be used: without it the
    /// server would take this runner for a copy of itself. So nothing of an answer is kept that the
    /// server has not signed.
    ///
    /// # Errors
    /// [`EnrolmentError::Dismissed`] where the identity has signed that.
    pub(crate) async fn authenticate(
        &mut self,
        key: &RunnerKey,
        home: &Home,
        runner: RunnerId,
        identity: &ServerIdentity,
    ) -> Result<String, EnrolmentError> {
        // After the challenge came: the server relies on it (`server_store`'s `join_state`).
        let join_state = home.join_state()?;
        let number = join_state.number;
        let message = signing::authenticate(&self.challenge, &self.audience, runner, number);
        let request = v1::AuthenticateRequest {
            runner: runner.to_string(),
            challenge: self.challenge.clone(),
            signature: key.sign(&message),
            join_state: number,
            join_state_signature: join_state.signature,
        };
        let answer = in_time(self.wire.authenticate(request)).await;
        let reply = answer.map_err(|error| match error {
            EnrolmentError::Unproven(status) => self.judge(status, runner, identity),
            error => error,
        })?;
        let signed = signing::authenticated(&self.challenge, runner, &reply);
        if !identity.signed(&signed, &reply.signature) {
            return Err(EnrolmentError::Altered);
        }
        home.save_join_state(&JoinState {
            number: reply.join_state,
            signature: reply.join_state_signature,
        })?;
        Ok(reply.access_token)
    }

    /// Tells the server's dismissal from a refusal that any party on the way can send.
    fn judge(
        &self,
        refusal: Status,
        runner: RunnerId,
        identity: &ServerIdentity,
    ) -> EnrolmentError {
        let signed = signing::dismissed(&self.challenge, runner);
        match dismissal::proof(&refusal) {
            Some(proof) if identity.signed(&signed, &proof) => EnrolmentError::Dismissed(refusal),
            _ => EnrolmentError::Unproven(refusal),
        }
    }

    fn of(url: &ServerUrl, connection: ServerConnection, reply: v1::IdentifyReply) -> Self {
        let reached = Reached {
            server: url.clone(),
            address: connection.address,
            transport: connection.wire.transport(),
        };
        Self {
            reached,
            wire: connection.wire,
            certificate: connection.certificate,
            challenge: reply.challenge,
            audience: reply.audience,
            sealing_key: reply.sealing_key,
        }
    }
}

/// Asks who is there; only an answer that the identity signed over our nonce is returned.
async fn identify(
    wire: &mut Wire,
    url: &ServerUrl,
    identity: &ServerIdentity,
    entropy: &dyn Entropy,
) -> Result<v1::IdentifyReply, EnrolmentError> {
    let mut nonce = vec![0; 32];
    entropy.fill(&mut nonce);
    let request = v1::IdentifyRequest {
        nonce: nonce.clone(),
        version: enrolling::VERSION,
    };
    let answer = in_time(wire.identify(request)).await;
    let reply = answer.map_err(|error| match error {
        // No Gantry server refuses this for another reason, and the peer has not proved to be one
        // yet.
        EnrolmentError::Unproven(status) if status.code() != Code::InvalidArgument => {
            EnrolmentError::NotGantry {
                url: url.to_string(),
                reason: status.message().to_owned(),
            }
        }
        error => error,
    })?;
    // Nothing is proved by that; nothing is sent either.
    if reply.identity_key == identity.0 && reply.sealing_key.is_empty() {
        return Err(EnrolmentError::Outdated);
    }
    let signed = signing::identify(&nonce, &reply);
    if reply.identity_key != identity.0 || !identity.signed(&signed, &reply.signature) {
        return Err(EnrolmentError::Stranger);
    }
    Ok(reply)
}

/// The service's calls, over what a connection speaks.
impl Wire {
    async fn identify(
        &mut self,
        request: v1::IdentifyRequest,
    ) -> Result<v1::IdentifyReply, Status> {
        match self {
            Self::Grpc(channel) => inner(client(channel).identify(request).await),
            Self::Http1(connection) => connection.call(http1::IDENTIFY, &request).await,
        }
    }

    async fn enrol(&mut self, request: v1::EnrolRequest) -> Result<v1::EnrolReply, Status> {
        match self {
            Self::Grpc(channel) => inner(client(channel).enrol(request).await),
            Self::Http1(connection) => connection.call(http1::ENROL, &request).await,
        }
    }

    async fn authenticate(
        &mut self,
        request: v1::AuthenticateRequest,
    ) -> Result<v1::AuthenticateReply, Status> {
        match self {
            Self::Grpc(channel) => inner(client(channel).authenticate(request).await),
            Self::Http1(connection) => connection.call(http1::AUTHENTICATE, &request).await,
        }
    }
}

fn client(channel: &Channel) -> EnrolmentClient<Channel> {
    EnrolmentClient::new(channel.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
}

fn inner<T>(answer: Result<Response<T>, Status>) -> Result<T, Status> {
    answer.map(Response::into_inner)
}

async fn in_time<T>(answer: impl Future<Output = Result<T, Status>>) -> Result<T, EnrolmentError> {
    match timeout(CALL_WITHIN, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(status)) => Err(EnrolmentError::Unproven(heard(status))),
        Err(_) => Err(EnrolmentError::Silent),
    }
}

/// The reason why the server did not answer as it should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnrolmentError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(
        "something between here and the server ends TLS, and the platform's root certificates do not vouch for it: {0}"
    )]
    Interposed(#[source] ConnectError),
    #[error(
        "the server there is not the one that is expected: its identity key is another one; check the address, and whether the token is of this server"
    )]
    Stranger,
    #[error("no Gantry server answers at {url}: check the address ({reason})")]
    NotGantry { url: String, reason: String },
    /// The server has sealed that.
    #[error("the server says: {}", .0.message())]
    Refused(Status),
    /// A refusal that anything on the way can say as well.
    #[error("the server, or something between here and there, says: {}", .0.message())]
    Unproven(Status),
    #[error(
        "the server's answer is not as it signed or sealed it: check what stands between the two"
    )]
    Altered,
    #[error("the server is older than this runner, and seals no enrolment: upgrade gantry-server")]
    Outdated,
    /// The server has proved that the runner was removed or locked.
    #[error("the server says: {}", .0.message())]
    Dismissed(Status),
    #[error("the server did not answer within {} s", CALL_WITHIN.as_secs())]
    Silent,
    #[error("the server's answer lacks {0}: it may be of another version")]
    Nonsense(&'static str),
    #[error(transparent)]
    Home(#[from] HomeError),
}

impl EnrolmentError {
    /// True if something on the way may be the cause, because it does not pass this protocol. A
    /// server that proved to be another one, or refuses, has been reached.
    fn may_be_the_way(&self) -> bool {
        matches!(
            self,
            Self::NotGantry { .. }
                | Self::Silent
                | Self::Connect(ConnectError::Http2(_) | ConnectError::Http1(_))
        )
    }
}
