//! A server double that speaks the real protocol over real connections, and builders of frames.

mod http1;
mod small_disk;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use aws_lc_rs::hmac;
use futures_util::{StreamExt as _, stream::BoxStream};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use proto::{
    PROTOCOL_VERSION,
    agreement::{Ephemeral, LinkKey},
    signing,
    v1::{self, enrolment_server as enrolment, runner_link_server as runner_link, server_frame},
};
use runner_host::{Host, HostOptions};
use runner_supervisor::KillChoice;
pub(crate) use shared_link::testing::{PLACE, incarnation, incoming, operation_frame, shell};
use shared_tls::ServerTls;
use shared_types::{
    Clock, OsEntropy, RunnerId, SystemClock, Token, entropy::SeededEntropy,
    limits::DISCONNECTED_AT_MOST,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::mpsc,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Response, Status, Streaming, service::Routes};

use crate::{
    connection::Transport,
    endpoints::Endpoints,
    journal::Journal,
    key::{RunnerKey, ServerIdentity},
    operations::{Fault, Found, Operations, OperationsService},
    processes::{ProcessOptions, Processes},
};

pub(crate) use small_disk::SmallDisk;

/// Longer than anything that is waited for in a test may take.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The id that the double gives to every runner.
pub(crate) const RUNNER: RunnerId = RunnerId::from_u128(7);

/// The challenge of every link.
const NONCE: [u8; 32] = [9; 32];

/// A server that enrols everybody and hands every link to its test.
pub(crate) struct FakeServer {
    pub(crate) url: String,
    pub(crate) links: mpsc::Receiver<FakeLink>,
    state: Arc<State>,
}

struct State {
    /// All that passes.
    over: Transport,
    identity: RunnerKey,
    seed: u64,
    /// The certificate's hash that it signs, whatever it presents.
    claims: Vec<u8>,
    /// Tokens that came with Enrol.
    tokens: Mutex<Vec<String>>,
    /// What Enrol and Authenticate are answered with, where it is not yes.
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
        Self::start(over, seed, None, Vec::new()).await
    }

    /// With TLS, signing for the certificate that it presents.
    pub(crate) async fn tls(over: Transport, seed: u64, tls: &ServerTls) -> Self {
        Self::start(over, seed, Some(tls), tls.certificate_sha256().to_vec()).await
    }

    /// With this certificate in front, signing for that hash.
    pub(crate) async fn start(
        over: Transport,
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
            refusal: Mutex::default(),
            links: sender,
        });
        let acceptor = tls.map(|tls| {
            let mut config = (*tls.config()).clone();
            if over == Transport::WebSocket {
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

    /// How often a token was sent.
    pub(crate) fn tokens_seen(&self) -> usize {
        self.state.tokens.lock().expect("no panic").len()
    }

    /// Refuses from now on.
    pub(crate) fn refuse(&self, status: Status) {
        *self.state.refusal.lock().expect("no panic") = Some(status);
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
                None => serve(socket, state).await,
                // A client may well dislike the certificate.
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(socket).await {
                        serve(stream, state).await;
                    }
                }
            }
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, state: Arc<State>) {
    if state.over == Transport::WebSocket {
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
        from_runner: FromRunner,
        to_runner: mpsc::Sender<Result<v1::ServerFrame, Status>>,
    ) {
        let link = FakeLink {
            identity: RunnerKey::generate(&SeededEntropy::new(self.seed)),
            key: None,
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
        let (challenge, audience) = (vec![5; 32], "test".to_owned());
        let nonce = request.into_inner().nonce;
        let signed = signing::identify(&nonce, &challenge, &self.claims, &audience);
        Ok(Response::new(v1::IdentifyReply {
            identity_key: self.identity.public().to_vec(),
            signature: self.identity.sign(&signed),
            certificate_sha256: self.claims.clone(),
            challenge,
            audience,
        }))
    }

    async fn enrol(
        &self,
        request: tonic::Request<v1::EnrolRequest>,
    ) -> Result<Response<v1::EnrolReply>, Status> {
        let request = request.into_inner();
        let key = ServerIdentity(request.public_key.try_into().expect("32 bytes"));
        let signed = signing::enrol(&request.challenge, &request.join_token);
        assert!(
            key.signed(&signed, &request.signature),
            "signed by the runner"
        );
        self.tokens
            .lock()
            .expect("no panic")
            .push(request.join_token);
        self.check()?;
        Ok(Response::new(v1::EnrolReply {
            runner: RUNNER.to_string(),
            name: "laptop".to_owned(),
        }))
    }

    async fn authenticate(
        &self,
        request: tonic::Request<v1::AuthenticateRequest>,
    ) -> Result<Response<v1::AuthenticateReply>, Status> {
        assert_eq!(request.into_inner().runner, RUNNER.to_string());
        self.check()?;
        Ok(Response::new(v1::AuthenticateReply {
            access_token: "access".to_owned(),
            expires_in_s: 600,
            join_state: 1,
        }))
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
        assert_eq!(bearer.expect("a token"), "Bearer access");
        let (to_runner, stream) = mpsc::channel(8);
        self.linked(request.into_inner().boxed(), to_runner).await;
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

type FromRunner = BoxStream<'static, Result<v1::RunnerFrame, Status>>;

/// The server's end of one link. Dropping it ends the link.
pub(crate) struct FakeLink {
    identity: RunnerKey,
    /// What tickets are made with, once it is welcome.
    key: Option<LinkKey>,
    from_runner: FromRunner,
    to_runner: mpsc::Sender<Result<v1::ServerFrame, Status>>,
}

impl FakeLink {
    /// Sends a frame with its ticket or signature, as the real server does.
    pub(crate) async fn send(&self, mut kind: server_frame::Kind) {
        let mut ticket = None;
        if let Some(key) = &self.key {
            let seal = |message: Vec<u8>| v1::Ticket {
                issued_ms: 0,
                mac: hmac::sign(&key.hmac(), &message).as_ref().to_vec(),
            };
            ticket = signing::order(&NONCE, 1, RUNNER, 0, &kind).map(seal);
            if let server_frame::Kind::Operation(operation) = &mut kind {
                operation.ticket = Some(seal(signing::ticket(&NONCE, 1, RUNNER, 0, operation)));
            }
        }
        if let server_frame::Kind::NewJournal(new_journal) = &mut kind {
            new_journal.signature = self.identity.sign(&signing::new_journal(&NONCE, RUNNER));
        }
        let kind = Some(kind);
        let frame = v1::ServerFrame { kind, ticket };
        self.to_runner.send(Ok(frame)).await.expect("a link");
    }

    /// Sends a frame as somebody would who does not hold the link's key.
    pub(crate) async fn send_bare(&self, kind: server_frame::Kind) {
        self.to_runner.send(Ok(kind.into())).await.expect("a link");
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
        frame.expect("a frame in time")?.ok()?.kind
    }

    /// Challenge and hello.
    pub(crate) async fn challenge(&mut self) -> v1::Hello {
        let nonce = NONCE.to_vec();
        self.send(server_frame::Kind::Challenge(v1::Challenge { nonce }))
            .await;
        match self.next().await {
            Some(v1::runner_frame::Kind::Hello(hello)) => *hello,
            other => panic!("no hello: {other:?}"),
        }
    }

    /// Challenge, hello, and a welcome with this version and silence.
    pub(crate) async fn welcome(&mut self, version: u32, silence: Duration) -> v1::Hello {
        let hello = self.challenge().await;
        let welcome = self.proof(&hello);
        self.send(server_frame::Kind::Welcome(v1::Welcome {
            protocol_version: version,
            silence_ms: silence.as_millis() as u32,
            ..welcome
        }))
        .await;
        hello
    }

    /// A welcome in which everything is right; what follows has tickets.
    pub(crate) fn proof(&mut self, hello: &v1::Hello) -> v1::Welcome {
        let ephemeral = Ephemeral::generate(&OsEntropy);
        let (theirs, ours) = (&hello.ephemeral_key, ephemeral.public());
        let signed = signing::welcome(&NONCE, 1, RUNNER, theirs, &ours);
        let info = signing::link_key(1, RUNNER, theirs, &ours);
        self.key = ephemeral
            .agree(theirs, &NONCE)
            .map(|secret| secret.key(&info));
        v1::Welcome {
            generation: 1,
            protocol_version: PROTOCOL_VERSION,
            heartbeat_every_ms: 100,
            silence_ms: 0,
            signature: self.identity.sign(&signed),
            ephemeral_key: ours,
        }
    }
}

/// An address where nobody listens.
pub(crate) fn nowhere() -> String {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}", closed.local_addr().expect("an address"))
}

/// These addresses, the first of them first.
pub(crate) fn endpoints(urls: &[&str]) -> Endpoints {
    let texts: Vec<_> = urls.iter().map(|url| (*url).to_owned()).collect();
    Endpoints::parse(&texts, false).expect("addresses")
}

/// Runs each of these tests for each of what may carry a link.
macro_rules! over_both {
    ($($test:ident,)*) => {
        mod over_grpc {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::connection::Transport::Grpc).await;
            })*
        }
        mod over_a_websocket {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::connection::Transport::WebSocket).await;
            })*
        }
    };
}
pub(crate) use over_both;

/// The operations of a daemon whose home and `workspace` lie in this folder, which may have been
/// used before, in this boot of the host.
pub(crate) async fn operations(folder: &Path, boot: &str) -> (Operations, OperationsService) {
    faulty_operations(folder, boot, None).await
}

/// The same, of a daemon that dies where `fault` says.
pub(crate) async fn faulty_operations(
    folder: &Path,
    boot: &str,
    fault: Option<Fault>,
) -> (Operations, OperationsService) {
    let workspace = folder.join("workspace");
    std::fs::create_dir_all(&workspace).expect("a workspace");
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let options = HostOptions {
        root: workspace,
        environment: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        file_operation_within: Duration::from_secs(10),
    };
    let host = Host::open(options, clock.clone()).expect("a host");
    let opened = Journal::open(&folder.join("journal"), clock.as_ref(), &OsEntropy);
    let opened = opened.expect("a journal");
    let options = ProcessOptions {
        supervisor: supervisor(),
        root: folder.join("commands"),
        waiting: 1,
        kill: KillChoice::Strongest,
    };
    let (processes, left) = Processes::open(options, clock.clone(), &OsEntropy)
        .await
        .expect("a pool");
    let found = Found {
        host,
        processes,
        left,
        journal: opened.journal,
        id: incarnation().journal,
        entries: opened.records,
        boot: boot.to_owned(),
        sandbox: PLACE,
        sync_before_start: false,
        disconnect_for: DISCONNECTED_AT_MOST,
        clock,
        fault,
    };
    Operations::open(found).await.expect("a table")
}

/// Names the program for the processes that a test starts, so that they do not look for it again.
pub(crate) const SUPERVISOR: &str = "STAND_IN_SUPERVISOR";

/// The program as cargo builds it, built once for each run of the tests.
#[expect(
    clippy::disallowed_methods,
    reason = "a test has no main that could pass it down"
)]
pub(crate) fn supervisor() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let known = || std::env::var_os(SUPERVISOR).map(PathBuf::from);
    BUILT
        .get_or_init(|| known().unwrap_or_else(build_supervisor))
        .clone()
}

fn build_supervisor() -> PathBuf {
    let test = std::env::current_exe().expect("this test's file");
    let folder = test.parent().and_then(Path::parent).expect("its profile");
    let target = folder.parent().expect("the target folder");
    let built = std::process::Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "runner-supervisor"])
        .args(["--bin", "gantry-supervisor", "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo");
    assert!(built.success(), "gantry-supervisor cannot be built");
    target.join("debug").join("gantry-supervisor")
}
