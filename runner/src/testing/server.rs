//! A server double that speaks the real protocol over real connections.

mod http1;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, stream::BoxStream};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use proto::{
    agreement::Ephemeral,
    dismissal, enrolling,
    sealing::{KeyPlace, LinkKeys, Opener, Sealer},
    signing,
    v1::{
        self, enrol_answer::Answer, enrolment_server as enrolment,
        runner_link_server as runner_link, server_frame,
    },
};
use shared_tls::ServerTls;
use shared_types::{RunnerId, Token, entropy::SeededEntropy};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::mpsc,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Response, Status, Streaming, service::Routes};

use super::SOON;
use crate::{
    connection::Transport,
    key::{RunnerKey, ServerIdentity},
};

/// The id that the double gives to every runner.
pub(crate) const RUNNER: RunnerId = RunnerId::from_u128(7);

/// The challenge of every Identify.
const CHALLENGE: [u8; 32] = [5; 32];

/// The private half of the key that enrolments are sealed to.
const SEALING_SECRET: [u8; 32] = [6; 32];

/// The access token of every link.
const ACCESS_TOKEN: &str = "access";

/// The challenge of every link.
const NONCE: [u8; 32] = [9; 32];

/// A server that enrols every runner and hands every link to its test.
pub(crate) struct FakeServer {
    pub(crate) url: String,
    pub(crate) links: mpsc::Receiver<FakeLink>,
    state: Arc<State>,
}

struct State {
    /// All that passes, if not everything does.
    over: Option<Transport>,
    identity: RunnerKey,
    seed: u64,
    /// The certificate's hash that it signs, which may differ from the one that it presents.
    claims: Vec<u8>,
    /// Tokens that came with Enrol.
    tokens: Mutex<Vec<String>>,
    /// Changes the answers of Enrol and Authenticate behind their seal and signature.
    alters: AtomicBool,
    /// The refusal that answers Enrol and Authenticate, where there is one.
    refusal: Mutex<Option<Status>>,
    links: mpsc::Sender<FakeLink>,
}

impl FakeServer {
    /// With plain text.
    pub(crate) async fn plain(seed: u64) -> Self {
        Self::over(Transport::Grpc, seed).await
    }

    /// With plain text, where nothing else passes than this.
    pub(crate) async fn over(over: Transport, seed: u64) -> Self {
        Self::start(Some(over), seed, None, Vec::new()).await
    }

    /// With plain text, where everything passes.
    pub(crate) async fn any(seed: u64) -> Self {
        Self::start(None, seed, None, Vec::new()).await
    }

    /// With TLS, signing for the certificate that it presents.
    pub(crate) async fn tls(over: Transport, seed: u64, tls: &ServerTls) -> Self {
        let claims = tls.certificate_sha256().to_vec();
        Self::start(Some(over), seed, Some(tls), claims).await
    }

    /// With this certificate in front, signing for that hash.
    pub(crate) async fn start(
        over: Option<Transport>,
        seed: u64,
        tls: Option<&ServerTls>,
        claims: Vec<u8>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().expect("an address"));
        let (sender, links) = mpsc::channel(8);
        let state = Arc::new(State {
            over,
            identity: RunnerKey::generate(&SeededEntropy::new(seed)),
            seed,
            claims,
            tokens: Mutex::default(),
            alters: AtomicBool::new(false),
            refusal: Mutex::default(),
            links: sender,
        });
        let acceptor = tls.map(|tls| {
            let mut config = (*tls.config()).clone();
            if over == Some(Transport::WebSocket) {
                // It agrees on nothing, as what knows no HTTP/2 may do.
                config.alpn_protocols.clear();
            }
            TlsAcceptor::from(Arc::new(config))
        });
        tokio::spawn(accept(listener, acceptor, state.clone()));
        Self { url, links, state }
    }

    pub(crate) fn identity(&self) -> ServerIdentity {
        ServerIdentity(self.state.identity.public().try_into().expect("32 bytes"))
    }

    /// A join token that pins this server.
    pub(crate) fn join_token(&self) -> Token {
        Token::join(self.identity().0, &SeededEntropy::new(99))
    }

    /// The number of times that a token was sent.
    pub(crate) fn tokens_seen(&self) -> usize {
        self.state.tokens.lock().expect("no panic").len()
    }

    /// Refuses from now on, as any peer can.
    pub(crate) fn refuse(&self, status: Status) {
        *self.state.refusal.lock().expect("no panic") = Some(status);
    }

    /// Refuses from now on because it has dismissed this runner, and proves it.
    pub(crate) fn dismiss(&self, runner: RunnerId, status: Status) {
        let signed = signing::dismissed(&CHALLENGE, runner);
        self.refuse(dismissal::prove(status, &self.state.identity.sign(&signed)));
    }

    /// From now on what it answers is changed on its way, or is so no more.
    pub(crate) fn alter(&self, alters: bool) {
        self.state.alters.store(alters, Ordering::Relaxed);
    }

    /// Refuses no more.
    pub(crate) fn relent(&self) {
        *self.state.refusal.lock().expect("no panic") = None;
    }

    /// The next link of a runner, before its first frame.
    pub(crate) async fn next_link(&mut self) -> FakeLink {
        let link = timeout(SOON, self.links.recv()).await;
        link.expect("a link in time").expect("a running server")
    }
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, state: Arc<State>) {
    loop {
        let (socket, _) = listener.accept().await.expect("a connection");
        let (acceptor, state) = (acceptor.clone(), state.clone());
        tokio::spawn(async move {
            match acceptor {
                None => {
                    let mut first = [0; 3];
                    let peeked = socket.peek(&mut first).await;
                    let spoken = match peeked {
                        Ok(3) if first == *b"PRI" => Transport::Grpc,
                        _ => Transport::WebSocket,
                    };
                    let over = state.over.unwrap_or(spoken);
                    serve(over, socket, state).await;
                }
                // A client may well dislike the certificate.
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(socket).await {
                        let over = state.over.expect("the test says what passes");
                        serve(over, stream, state).await;
                    }
                }
            }
        });
    }
}

async fn serve(
    over: Transport,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    state: Arc<State>,
) {
    if over == Transport::WebSocket {
        return http1::serve(stream, state).await;
    }
    let routes = Routes::new(enrolment::EnrolmentServer::from_arc(state.clone()))
        .add_service(runner_link::RunnerLinkServer::from_arc(state));
    let service = TowerToHyperService::new(routes.prepare());
    let _ = auto::Builder::new(TokioExecutor::new())
        .http2_only()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl State {
    fn check(&self) -> Result<(), Status> {
        let refusal = self.refusal.lock().expect("no panic").clone();
        refusal.map_or(Ok(()), Err)
    }

    /// Hands a link to the test.
    async fn linked(
        &self,
        over: Transport,
        from_runner: FromRunner,
        to_runner: mpsc::Sender<Result<v1::ServerFrame, Status>>,
    ) {
        let link = FakeLink {
            over,
            identity: RunnerKey::generate(&SeededEntropy::new(self.seed)),
            key: KeyPlace::default(),
            sealer: None,
            opener: None,
            from_runner,
            to_runner,
        };
        self.links.send(link).await.expect("a test that waits");
    }
}

#[tonic::async_trait]
impl enrolment::Enrolment for State {
    async fn identify(
        &self,
        request: tonic::Request<v1::IdentifyRequest>,
    ) -> Result<Response<v1::IdentifyReply>, Status> {
        let request = request.into_inner();
        assert_eq!(request.version, enrolling::VERSION);
        let mut reply = v1::IdentifyReply {
            identity_key: self.identity.public().to_vec(),
            signature: Vec::new(),
            certificate_sha256: self.claims.clone(),
            challenge: CHALLENGE.to_vec(),
            audience: "test".to_owned(),
            sealing_key: Ephemeral::of(SEALING_SECRET).public(),
        };
        let signed = signing::identify(&request.nonce, &reply);
        reply.signature = self.identity.sign(&signed);
        Ok(Response::new(reply))
    }

    async fn enrol(
        &self,
        request: tonic::Request<v1::EnrolRequest>,
    ) -> Result<Response<v1::EnrolReply>, Status> {
        let request = request.into_inner();
        assert_eq!(request.challenge, CHALLENGE);
        let opened = enrolling::open(Ephemeral::of(SEALING_SECRET), &request);
        let (content, reply_key) = opened.expect("it is sealed");
        let key = ServerIdentity(content.public_key.try_into().expect("32 bytes"));
        let signed = signing::enrol(&CHALLENGE, &request.ephemeral_key, &content.join_token);
        assert!(
            key.signed(&signed, &content.signature),
            "signed by the runner"
        );
        self.tokens
            .lock()
            .expect("no panic")
            .push(content.join_token);
        let mut reply = reply_key.seal(match self.check() {
            Ok(()) => Answer::Enrolled(v1::Enrolled {
                runner: RUNNER.to_string(),
                name: "laptop".to_owned(),
            }),
            Err(refusal) => Answer::Refused(v1::EnrolRefused {
                code: refusal.code() as i32,
                message: refusal.message().to_owned(),
            }),
        });
        if self.alters.load(Ordering::Relaxed) {
            reply.sealed[0] ^= 1;
        }
        Ok(Response::new(reply))
    }

    async fn authenticate(
        &self,
        request: tonic::Request<v1::AuthenticateRequest>,
    ) -> Result<Response<v1::AuthenticateReply>, Status> {
        assert_eq!(request.into_inner().runner, RUNNER.to_string());
        self.check()?;
        let mut reply = v1::AuthenticateReply {
            access_token: ACCESS_TOKEN.to_owned(),
            expires_in_s: 600,
            join_state: 1,
            join_state_signature: self.identity.sign(&signing::join_state(RUNNER, 1)),
            signature: Vec::new(),
        };
        let signed = signing::authenticated(&CHALLENGE, RUNNER, &reply);
        reply.signature = self.identity.sign(&signed);
        if self.alters.load(Ordering::Relaxed) {
            reply.join_state = 7;
        }
        Ok(Response::new(reply))
    }
}

#[tonic::async_trait]
impl runner_link::RunnerLink for State {
    type LinkStream = ReceiverStream<Result<v1::ServerFrame, Status>>;

    async fn link(
        &self,
        request: tonic::Request<Streaming<v1::RunnerFrame>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        let bearer = request.metadata().get("authorization");
        let bearer = bearer.and_then(|bearer| bearer.to_str().ok());
        assert_eq!(bearer.expect("a token"), format!("Bearer {ACCESS_TOKEN}"));
        let (to_runner, stream) = mpsc::channel(8);
        let from_runner = request.into_inner().boxed();
        self.linked(Transport::Grpc, from_runner, to_runner).await;
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

type FromRunner = BoxStream<'static, Result<v1::RunnerFrame, Status>>;

/// The server's end of one link. Dropping it ends the link.
pub(crate) struct FakeLink {
    /// The transport that carries it.
    pub(crate) over: Transport,
    identity: RunnerKey,
    key: KeyPlace<v1::ServerFrame>,
    /// Seals the server's frames, once it has sent a challenge.
    sealer: Option<Sealer<v1::ServerFrame>>,
    /// Opens the runner's frames, once it has proved itself.
    opener: Option<Opener<v1::RunnerFrame>>,
    from_runner: FromRunner,
    to_runner: mpsc::Sender<Result<v1::ServerFrame, Status>>,
}

impl FakeLink {
    /// Sends a frame as the real server does, sealed once the runner has proved itself.
    pub(crate) async fn send(&mut self, kind: server_frame::Kind) {
        let frame = v1::ServerFrame::from(kind);
        let sealer = self.sealer.as_mut();
        let sealed = sealer.and_then(|sealer| sealer.seal(frame.clone()));
        self.send_bare(sealed.unwrap_or(frame)).await;
    }

    /// Sends a frame as it is.
    pub(crate) async fn send_bare(&self, frame: v1::ServerFrame) {
        self.to_runner.send(Ok(frame)).await.expect("a link");
    }

    /// Ends the link with this status.
    pub(crate) async fn end(self, status: Status) {
        self.to_runner.send(Err(status)).await.expect("a link");
    }

    /// The next frame that is not a heartbeat; `None` at the end of the link.
    pub(crate) async fn next(&mut self) -> Option<v1::runner_frame::Kind> {
        loop {
            match self.next_of_all().await {
                Some(v1::runner_frame::Kind::Heartbeat(_)) => {}
                kind => return kind,
            }
        }
    }

    /// The next frame; `None` at the end of the link.
    pub(crate) async fn next_of_all(&mut self) -> Option<v1::runner_frame::Kind> {
        let frame = timeout(SOON, self.from_runner.next()).await;
        let frame = frame.expect("a frame in time")?.ok()?;
        match &mut self.opener {
            Some(opener) => opener.open(frame).expect("it is sealed").kind,
            None => frame.kind,
        }
    }

    /// The challenge that the real server would send.
    pub(crate) fn challenged(&mut self) -> v1::Challenge {
        let mut challenge = v1::Challenge {
            nonce: NONCE.to_vec(),
            ephemeral_key: ephemeral().public(),
            signature: Vec::new(),
        };
        let signed = signing::challenge(ACCESS_TOKEN, &challenge);
        challenge.signature = self.identity.sign(&signed);
        self.sealer = Some(Sealer::new(self.key.clone()));
        challenge
    }

    /// Challenge and hello.
    pub(crate) async fn challenge(&mut self) -> v1::Hello {
        let challenge = self.challenged();
        self.send(server_frame::Kind::Challenge(challenge)).await;
        match self.next().await {
            Some(v1::runner_frame::Kind::Proof(proof)) => self.hello(*proof),
            other => panic!("no proof: {other:?}"),
        }
    }

    fn hello(&mut self, proof: v1::Proof) -> v1::Hello {
        let keys = LinkKeys::of_server(RUNNER, ephemeral(), &NONCE, &proof);
        let keys = keys.expect("a public key");
        self.key.put(keys.from_server);
        let opener = self.opener.insert(Opener::new(keys.from_runner));
        let hello = opener.first(&proof.hello.expect("a hello"));
        match hello.expect("it is sealed").kind {
            Some(v1::runner_frame::Kind::Hello(hello)) => *hello,
            other => panic!("no hello: {other:?}"),
        }
    }

    /// Challenge, hello, and a welcome with this version and silence.
    pub(crate) async fn welcome(&mut self, version: u32, silence: Duration) -> v1::Hello {
        let hello = self.challenge().await;
        self.let_in(version, silence).await;
        hello
    }

    /// A welcome with this version and silence.
    pub(crate) async fn let_in(&mut self, version: u32, silence: Duration) {
        let welcome = v1::Welcome {
            generation: 1,
            protocol_version: version,
            heartbeat_every_ms: 100,
            silence_ms: silence.as_millis() as u32,
        };
        self.send(server_frame::Kind::Welcome(welcome)).await;
    }
}

/// The server's half of the keys of every link.
fn ephemeral() -> Ephemeral {
    Ephemeral::of([8; 32])
}
