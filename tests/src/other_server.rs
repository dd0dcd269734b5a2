//! A server that enrols everybody, proves itself, and then ends its links as a test wants.

use std::sync::Arc;

use axum::Router;
use proto::{
    sealing::Sealer,
    v1::{
        self,
        enrolment_server::{Enrolment, EnrolmentServer},
        runner_frame,
        runner_link_server::{RunnerLink, RunnerLinkServer},
        server_frame::Kind,
    },
};
use server_app::{LinkChallenge, keys::SigningKey};
use shared_types::{OsEntropy, RunnerId, Token};
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming, service::Routes};

use crate::enrolment_double;

/// Frames that wait for the connection.
const FRAMES: usize = 8;

/// The id that it gives to every runner.
const RUNNER: RunnerId = RunnerId::from_u128(1);

/// The access token of every link.
const ACCESS_TOKEN: &str = "access";

/// The answer to a proof.
#[derive(Debug, Clone)]
pub enum Says {
    /// None.
    Nothing,
    /// This welcome.
    Welcome(v1::Welcome),
    /// The end, with this status.
    Status(Status),
}

/// The server; it runs in the test's process and stops when this is dropped.
pub struct OtherServer {
    /// Where it listens.
    pub url: String,
    /// A join token that pins it.
    pub token: String,
    serving: JoinHandle<()>,
}

impl OtherServer {
    /// Starts on a free loopback port.
    pub async fn start(says: Says) -> Self {
        let identity = SigningKey::generate(&OsEntropy);
        let pin = identity.public();
        let identity = Arc::new(identity);
        let double = Arc::new(Double { identity, says });
        let mut routes = Routes::builder();
        routes
            .add_service(EnrolmentServer::from_arc(double.clone()))
            .add_service(RunnerLinkServer::from_arc(double));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        Self {
            url,
            token: Token::join(pin, &OsEntropy).reveal(),
            serving: serve(listener, routes.routes().into_axum_router()),
        }
    }

    /// Stops, and serves something else at the same address for as long as the test runs.
    pub async fn becomes(mut self, routes: Router) -> String {
        self.serving.abort();
        // The port is free once the task is gone.
        let _ = (&mut self.serving).await;
        let address = self.url.trim_start_matches("http://");
        let listener = TcpListener::bind(address).await.expect("its own port");
        serve(listener, routes);
        self.url.clone()
    }
}

impl Drop for OtherServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn serve(listener: TcpListener, routes: Router) -> JoinHandle<()> {
    tokio::spawn(async move {
        let _ = axum::serve(listener, routes).await;
    })
}

struct Double {
    identity: Arc<SigningKey>,
    says: Says,
}

#[tonic::async_trait]
impl Enrolment for Double {
    async fn identify(
        &self,
        request: Request<v1::IdentifyRequest>,
    ) -> Result<Response<v1::IdentifyReply>, Status> {
        let said = v1::IdentifyReply {
            identity_key: self.identity.public().to_vec(),
            challenge: vec![5; 32],
            audience: "double".to_owned(),
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
        let reply = enrolment_double::enrolled(&request.into_inner(), RUNNER, "laptop");
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
impl RunnerLink for Double {
    type LinkStream = ReceiverStream<Result<v1::ServerFrame, Status>>;

    async fn link(
        &self,
        request: Request<Streaming<v1::RunnerFrame>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        let (to_runner, frames) = mpsc::channel(FRAMES);
        let (identity, says) = (self.identity.clone(), self.says.clone());
        tokio::spawn(answer(request.into_inner(), to_runner, identity, says));
        Ok(Response::new(ReceiverStream::new(frames)))
    }
}

async fn answer(
    mut inbound: Streaming<v1::RunnerFrame>,
    to_runner: mpsc::Sender<Result<v1::ServerFrame, Status>>,
    identity: Arc<SigningKey>,
    says: Says,
) {
    let challenge = LinkChallenge::issue(ACCESS_TOKEN, &identity, &OsEntropy);
    let mut sealer = Sealer::new(challenge.key());
    let mut seal = |kind: Kind| Ok(sealer.seal(kind.into()).expect("there is a key"));
    // A runner that is gone hears nothing.
    let first = seal(Kind::Challenge(challenge.said().clone()));
    let _ = to_runner.send(first).await;
    let Ok(Some(v1::RunnerFrame {
        kind: Some(runner_frame::Kind::Proof(proof)),
    })) = inbound.message().await
    else {
        return;
    };
    challenge.agree(RUNNER, &proof).expect("a runner's key");
    match says {
        Says::Nothing => {}
        Says::Welcome(welcome) => {
            let _ = to_runner.send(seal(Kind::Welcome(welcome))).await;
        }
        Says::Status(status) => return drop(to_runner.send(Err(status)).await),
    }
    to_runner.closed().await;
}
