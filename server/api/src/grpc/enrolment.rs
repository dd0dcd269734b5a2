//! The enrolment service: see `enrolment.proto` for what is signed and why.

use proto::{dismissal, v1};
use server_app::{App, AuthenticateRequest, EnrolRequest, NotLetIn};
use tonic::{Request, Response, Status};

use super::status;
use crate::Peer;

pub(super) struct Service {
    app: App,
}

impl Service {
    pub(super) fn new(app: App) -> Self {
        Self { app }
    }
}

#[tonic::async_trait]
impl v1::enrolment_server::Enrolment for Service {
    async fn identify(
        &self,
        request: Request<v1::IdentifyRequest>,
    ) -> Result<Response<v1::IdentifyReply>, Status> {
        let reply = self
            .app
            .enrolment
            .identify(&request.into_inner().nonce)
            .map_err(|error| status(&error))?;
        Ok(Response::new(v1::IdentifyReply {
            identity_key: reply.identity_key.to_vec(),
            challenge: reply.challenge,
            certificate_sha256: reply
                .certificate
                .map(|digest| digest.to_vec())
                .unwrap_or_default(),
            audience: reply.audience,
            signature: reply.signature,
        }))
    }

    async fn enrol(
        &self,
        request: Request<v1::EnrolRequest>,
    ) -> Result<Response<v1::EnrolReply>, Status> {
        let address = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
        let wire = request.into_inner();
        let ask = EnrolRequest {
            join_token: wire.join_token,
            public_key: wire.public_key,
            challenge: wire.challenge,
            signature: wire.signature,
            name: wire.name,
            labels: wire.labels.into_iter().collect(),
            hostname: wire.hostname,
            version: wire.software_version,
            address,
        };
        let enrolled = self
            .app
            .enrolment
            .enrol(ask)
            .await
            .map_err(|error| status(&error))?;
        Ok(Response::new(v1::EnrolReply {
            runner: enrolled.runner.to_string(),
            name: enrolled.name,
        }))
    }

    async fn authenticate(
        &self,
        request: Request<v1::AuthenticateRequest>,
    ) -> Result<Response<v1::AuthenticateReply>, Status> {
        let address = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
        let wire = request.into_inner();
        let ask = AuthenticateRequest {
            runner: wire.runner,
            challenge: wire.challenge,
            signature: wire.signature,
            join_state: wire.join_state,
            address,
        };
        let (access_token, join_state) = self
            .app
            .enrolment
            .authenticate(&ask)
            .await
            .map_err(refusal)?;
        let expires_in_s = u32::try_from(server_app::LINK_TOKEN_FOR.as_secs()).unwrap_or(u32::MAX);
        Ok(Response::new(v1::AuthenticateReply {
            access_token,
            expires_in_s,
            join_state,
        }))
    }
}

fn refusal(refused: NotLetIn) -> Status {
    let status = status(&refused.error);
    match refused.dismissal {
        Some(signature) => dismissal::prove(status, &signature),
        None => status,
    }
}
