//! The way to the model server of a runner's machine: the runner's link.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use server_llm::{Failure, ModelError, Reply, ReplyBody, Transport};
use server_router::links::{Links, ModelAnswer};
use shared_link::server::{AnswerPart, AskFailure, AskFailureKind, AskKind};
use shared_types::{RunnerId, TraceContext};

/// The way to the model server of one runner.
pub(super) struct OverLink {
    pub(super) links: Links,
    pub(super) runner: RunnerId,
    /// Its name, for messages.
    pub(super) name: String,
}

impl fmt::Debug for OverLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverLink")
            .field("runner", &self.runner)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for OverLink {
    async fn send(&self, body: Vec<u8>, trace: Option<TraceContext>) -> Result<Reply, Failure> {
        let name = &self.name;
        let (kind, body) = (AskKind::ChatCompletions, Bytes::from(body));
        let asked = self.links.ask_model(self.runner, kind, &body, trace).await;
        let mut answer = asked.ok_or_else(|| Failure {
            error: ModelError::Unavailable(offline(name)),
            retry_after: None,
            is_unasked: true,
        })?;
        let head = loop {
            match answer.next().await {
                Some(AnswerPart::Head(head)) => break head,
                Some(AnswerPart::Failed(failure)) => return Err(failed(name, &failure).into()),
                // The router lets no data pass before the head.
                Some(AnswerPart::Data(_)) => {}
                Some(AnswerPart::End) => {
                    return Err(ModelError::Broken(format!(
                        "runner {name} sent an empty answer: update gantry-runner"
                    ))
                    .into());
                }
                None => return Err(went_away(name).into()),
            }
        };
        let headers = head.headers.iter();
        let headers = headers.map(|(name, value)| (name.as_str(), value.as_str()));
        let body = OverLinkBody {
            answer,
            runner: name.clone(),
        };
        Ok(Reply::new(head.status, headers, Box::new(body)))
    }
}

/// The body of an answer over a link.
struct OverLinkBody {
    answer: ModelAnswer,
    runner: String,
}

#[async_trait]
impl ReplyBody for OverLinkBody {
    async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        loop {
            return match self.answer.next().await {
                Some(AnswerPart::Data(data)) => Ok(Some(data)),
                Some(AnswerPart::End) => Ok(None),
                Some(AnswerPart::Failed(failure)) => Err(failed(&self.runner, &failure)),
                // The router lets no second head pass.
                Some(AnswerPart::Head(_)) => continue,
                None => Err(went_away(&self.runner)),
            };
        }
    }
}

/// The words where the runner has no link here.
pub(super) fn offline(name: &str) -> String {
    format!(
        "runner {name} is offline: start it (gantry-runner run), or choose another model: gantry config set model NAME"
    )
}

/// The error where the link ended before the answer.
fn went_away(name: &str) -> ModelError {
    ModelError::Broken(format!(
        "runner {name} went away in mid-answer: send the message again once it is back, or choose another model"
    ))
}

/// The error for a failure that the runner reports.
fn failed(name: &str, failure: &AskFailure) -> ModelError {
    let reason = &failure.reason;
    match failure.kind {
        AskFailureKind::Unreachable => ModelError::Unavailable(format!(
            "the model server of runner {name} cannot be reached ({reason}): check that it runs and that --model-server is right"
        )),
        AskFailureKind::Broken => ModelError::Broken(format!(
            "the model server of runner {name} broke its answer off ({reason}): if this repeats, look at its log"
        )),
        AskFailureKind::Silent => ModelError::TimedOut(format!(
            "the model server of runner {name} was silent ({reason}): check that it is not overloaded"
        )),
        AskFailureKind::Busy => ModelError::RateLimited(format!(
            "runner {name} is asked for too many answers at once ({reason}): try again in a minute"
        )),
        AskFailureKind::Invalid => ModelError::Refused(format!(
            "runner {name} does not take the request ({reason}): start a new session"
        )),
        AskFailureKind::Unsupported => ModelError::Refused(format!(
            "runner {name} cannot be asked for a model ({reason})"
        )),
    }
}
