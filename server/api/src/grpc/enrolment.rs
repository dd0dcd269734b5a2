//! The enrolment service: see `enrolment.proto` for what is signed and why.

use std::sync::Arc;

use proto::{
    dismissal,
    v1::{self, enrol_answer::Answer},
};
use server_app::{App, AuthenticateRequest, NotLetIn};
use tonic::{Request, Response, Status};

use crate::{Peer, edge::serve::Presented, status::status};

pub(super) struct EnrolmentService {
    app: Arc<App>,
}

impl EnrolmentService {
    pub(super) fn new(app: Arc<App>) -> Self {
        Self { app }
    }
}

#[tonic::async_trait]
impl v1::enrolment_server::Enrolment for EnrolmentService {
    async fn identify(
        &self,
        request: Request<v1::IdentifyRequest>,
    ) -> Result<Response<v1::IdentifyReply>, Status> {
        let presented = request.extensions().get::<Presented>();
        let presented = presented.map(|Presented(certificate)| *certificate);
        let reply = (self.app.enrolment).identify(&request.into_inner(), presented);
        Ok(Response::new(reply.map_err(|error| status(&error))?))
    }

    async fn enrol(
        &self,
        request: Request<v1::EnrolRequest>,
    ) -> Result<Response<v1::EnrolReply>, Status> {
        let address = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
        let joined = self
            .app
            .enrolment
            .enrol(request.into_inner(), address)
            .await
            .map_err(|error| status(&error))?;
        let answer = match joined.answer {
            Ok(enrolled) => Answer::Enrolled(v1::Enrolled {
                runner: enrolled.runner.to_string(),
                name: enrolled.name,
            }),
            Err(error) => {
                let status = status(&error);
                Answer::Refused(v1::EnrolRefused {
                    code: status.code() as i32,
                    message: status.message().to_owned(),
                })
            }
        };
        Ok(Response::new(joined.reply.seal(answer)))
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
            join_state_signature: wire.join_state_signature,
            address,
        };
        let reply = self.app.enrolment.authenticate(&ask).await;
        Ok(Response::new(reply.map_err(refusal)?))
    }
}

fn refusal(refused: NotLetIn) -> Status {
    let status = status(&refused.error);
    match refused.dismissal {
        Some(signature) => dismissal::prove(status, &signature),
        None => status,
    }
}
