//! The server's end of a link, in this process: the real router behind the real HTTP/2 server
//! (and TLS), with ports in memory, and output in the server's own area of files. What is left out of
//! the server is its database, and with it every commit; the runner is the real release program, and cannot tell the difference.

mod area;
mod kept;
mod operation;
mod rows;

use std::{pin::Pin, sync::Arc};

use futures_util::{StreamExt as _, future::ready};
use proto::v1::{
    self, enrolment_server::Enrolment, enrolment_server::EnrolmentServer, runner_frame,
    runner_link_server::RunnerLink, runner_link_server::RunnerLinkServer, server_frame,
};
use server_app::{LinkChallenge, keys::SigningKey};
use server_records::LinkIdentity;
use server_router::{
    SandboxRouter,
    links::{LinkOptions, Links},
};
use shared_tls::ServerTls;
use shared_types::{OsEntropy, RunnerId, SystemClock, TenantId, Token, limits::MAX_FRAME_BYTES};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::mpsc};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Request, Response, Status, Streaming};

use self::area::area;
pub use self::{area::output_key, kept::KeptDoor, operation::operation, rows::Rows};
use crate::{enrolment_double, gantry::Runner, proxy::Proxy};

/// The only runner here.
const RUNNER: RunnerId = RunnerId::from_u128(1);
/// The access token of every link.
const ACCESS_TOKEN: &str = "bench";
/// Frames that may wait in each direction, as in the server.
const FRAMES: usize = 64;

/// More than the one runner takes.
const DESCRIPTORS: usize = 1024;

/// A door with a runner linked to it.
pub struct Door {
    /// The workspace of that runner.
    pub sandbox: SandboxRouter,
    /// What a store would keep.
    pub rows: Arc<Rows>,
    /// The runner, which runs.
    pub runner: Runner,
    _stop: DropGuard,
    _area: TempDir,
}

impl Door {
    /// Opens it, and waits until a runner of its own is linked.
    pub async fn open(with_tls: bool) -> Self {
        Self::open_with(with_tls, &[]).await
    }

    /// Opens it for a runner whose daemon has these options as well.
    pub async fn open_with(with_tls: bool, options: &[&str]) -> Self {
        let way = |url| async { (url, ()) };
        Self::opened(with_tls, options, way).await.0
    }

    /// Whose the containers are, where its runner makes them.
    pub fn runner_id(&self) -> RunnerId {
        RUNNER
    }

    /// Opens it with a bad network between it and its runner.
    pub async fn behind_a_proxy() -> (Self, Proxy) {
        let way = |url: String| async move {
            let proxy = Proxy::before(&url).await;
            (proxy.url().to_owned(), proxy)
        };
        Self::opened(false, &[], way).await
    }

    async fn opened<W, F: Future<Output = (String, W)>>(
        with_tls: bool,
        daemon_options: &[&str],
        way: impl FnOnce(String) -> F,
    ) -> (Self, W) {
        let keys = tempfile::tempdir().expect("a temporary folder");
        let tls = with_tls.then(|| {
            let names = ["127.0.0.1".to_owned()];
            ServerTls::self_signed(keys.path(), &names).expect("a certificate")
        });
        let (rows, clock) = (Arc::new(Rows::default()), Arc::new(SystemClock::new()));
        let folder = tempfile::tempdir().expect("a temporary folder");
        rows.keep_output_in(Arc::new(area(folder.path())));
        let stop = CancellationToken::new();
        let options = LinkOptions::default();
        let links = Links::start(
            rows.clone(),
            clock.clone(),
            Arc::new(OsEntropy),
            options,
            stop.clone(),
        );
        let services = Services {
            links: links.clone(),
            identity: Arc::new(SigningKey::generate(&OsEntropy)),
            certificate: tls.as_ref().map(ServerTls::certificate_sha256),
        };
        let token = Token::join(services.identity.public(), &OsEntropy).reveal();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        serve(listener, services, tls, stop.clone());
        let (url, way) = way(format!("{scheme}://{address}")).await;

        let mut runner = Runner::enrol(&url, &token, "bench").await;
        runner.options(daemon_options);
        runner.start();
        links.presence(RUNNER).await.until(true).await;
        let door = Self {
            sandbox: SandboxRouter::new(links, rows.clone(), rows.clone(), rows.clone(), clock),
            rows,
            runner,
            _stop: stop.drop_guard(),
            _area: folder,
        };
        (door, way)
    }
}

fn serve(
    listener: TcpListener,
    services: Services,
    tls: Option<ServerTls>,
    stop: CancellationToken,
) {
    let link = RunnerLinkServer::new(services.clone()).max_decoding_message_size(MAX_FRAME_BYTES);
    let mut routes = tonic::service::Routes::builder();
    routes
        .add_service(EnrolmentServer::new(services))
        .add_service(link);
    let door = server_api::Door {
        listener,
        tls: tls.map(|tls| tokio::sync::watch::channel(tls).1),
        limits: server_api::Limits::default(),
        client_address: None,
        descriptors: DESCRIPTORS,
    };
    tokio::spawn(server_api::serve(
        door,
        routes.routes().into_axum_router(),
        stop,
    ));
}

/// What a runner calls. It is let in without a question: nobody else knows the address.
#[derive(Clone)]
struct Services {
    links: Links,
    identity: Arc<SigningKey>,
    certificate: Option<[u8; 32]>,
}

#[tonic::async_trait]
impl Enrolment for Services {
    async fn identify(
        &self,
        request: Request<v1::IdentifyRequest>,
    ) -> Result<Response<v1::IdentifyReply>, Status> {
        let said = v1::IdentifyReply {
            identity_key: self.identity.public().to_vec(),
            challenge: b"bench".to_vec(),
            certificate_sha256: self.certificate.map(Vec::from).unwrap_or_default(),
            audience: "bench".to_owned(),
            ..v1::IdentifyReply::default()
        };
        let sign = |message: &[u8]| self.identity.sign(message);
        let reply = enrolment_double::identified(&request.into_inner(), said, sign);
        Ok(Response::new(reply))
    }

    async fn enrol(
        &self,
        request: Request<v1::EnrolRequest>,
    ) -> Result<Response<v1::EnrolReply>, Status> {
        let reply = enrolment_double::enrolled(&request.into_inner(), RUNNER, "bench");
        reply.map(Response::new)
    }

    async fn authenticate(
        &self,
        request: Request<v1::AuthenticateRequest>,
    ) -> Result<Response<v1::AuthenticateReply>, Status> {
        let sign = |message: &[u8]| self.identity.sign(message);
        let reply = enrolment_double::let_in(&request.into_inner(), (RUNNER, ACCESS_TOKEN), sign);
        Ok(Response::new(reply))
    }
}

#[tonic::async_trait]
impl RunnerLink for Services {
    type LinkStream = Pin<Box<dyn Stream<Item = Result<v1::ServerFrame, Status>> + Send>>;

    async fn link(
        &self,
        request: Request<Streaming<v1::RunnerFrame>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        let (outbound, frames) = mpsc::channel(FRAMES);
        let place = request
            .extensions()
            .get::<server_api::ConnectionPermit>()
            .cloned();
        if let Some(place) = &place {
            place.let_in();
        }
        let challenge = LinkChallenge::issue(ACCESS_TOKEN, &self.identity, &OsEntropy);
        let sealer = self.links.sealer(RUNNER, challenge.key()).await;
        let link = link(self.clone(), challenge, request.into_inner(), outbound);
        tokio::spawn(async move {
            link.await;
            // Without it the connection would be closed as one that asks for nothing.
            drop(place);
        });
        let sealed = ReceiverStream::new(frames)
            .scan(sealer, |sealer, frame| ready(sealer.seal(frame)))
            .map(Ok);
        Ok(Response::new(Box::pin(sealed)))
    }
}

/// What the server's own door does with a link whose runner is known.
async fn link(
    services: Services,
    challenge: LinkChallenge,
    mut inbound: Streaming<v1::RunnerFrame>,
    outbound: mpsc::Sender<Box<v1::ServerFrame>>,
) {
    let kind = server_frame::Kind::Challenge(challenge.said().clone());
    let sent = outbound.send(Box::new(kind.into())).await;
    let proof = inbound
        .message()
        .await
        .ok()
        .flatten()
        .and_then(|frame| frame.kind);
    let (Ok(()), Some(runner_frame::Kind::Proof(proof))) = (sent, proof) else {
        return;
    };
    let mut opener = challenge.agree(RUNNER, &proof).expect("a runner's key");
    let hello = opener.first(&proof.hello.unwrap_or_default());
    let Some(runner_frame::Kind::Hello(hello)) = hello.expect("its hello").kind else {
        return;
    };
    let identity = LinkIdentity {
        tenant: TenantId::from_u128(1),
        runner: RUNNER,
        name: "bench".to_owned(),
    };
    let opened = move |frame| opener.open(frame).ok();
    let readable = inbound.scan(opened, |opened, frame| {
        ready(frame.ok().and_then(&mut *opened))
    });
    let readable = readable.boxed();
    let links = services.links;
    links.attach(identity, *hello, readable, outbound).await;
}
