//! The end of a call, as it is recorded.

use std::time::Duration;

use shared_sandbox::{EndToken, Events, Outcome};
use shared_types::{
    Digest, Event, OperationId,
    event::{Awaited, FileSeen, Part, Parts},
};

use super::{Call, Ran};
use crate::{
    session::LogError,
    tools::Rendered,
    turn::{TurnError, conclusion::Conclusion, guarded, listen::Listener, show::CallPlace},
};

/// A call that ended.
pub(in crate::turn) struct Done {
    /// To be recorded.
    pub(in crate::turn) event: Event,
    /// To be recorded with it, before it.
    pub(in crate::turn) before: Option<Event>,
    /// The end of its operation, to be stored with the event. Absent also where the end is stored already.
    pub(in crate::turn) end: Option<End>,
    /// Its operation, where the end of that is not known.
    pub(in crate::turn) left: Option<Left>,
}

/// The end of an operation.
pub(in crate::turn) struct End {
    pub(in crate::turn) operation: OperationId,
    pub(in crate::turn) outcome: Outcome,
    /// Spent once the end is stored.
    pub(in crate::turn) token: EndToken,
}

/// An operation that is left to the sandbox.
pub(in crate::turn) struct Left {
    pub(in crate::turn) operation: OperationId,
    /// Held until the call's end is recorded, and with it the claim to an end that comes before that. The
    /// log tells of an end that the sandbox stores later.
    pub(in crate::turn) events: Option<Box<dyn Events>>,
}

/// The time that a call was given and the time that it took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) budget: Duration,
    pub(super) duration: Duration,
}

/// The facts that the end of a call records beside its text.
#[derive(Debug, Clone, Default)]
pub(super) struct Beside {
    /// The digest of the whole text, where the result is a part of it.
    pub(super) whole: Option<Digest>,
    /// True if no runner could be given it.
    pub(super) unplaced: bool,
    /// The number of the task as which it goes on.
    pub(super) task: Option<u32>,
    /// The event that it waited for in vain.
    pub(super) awaits: Option<Awaited>,
    /// The file that it read, wrote or edited.
    pub(super) file: Option<FileSeen>,
    /// The tools that it found.
    pub(super) tools: Vec<String>,
}

impl Call<'_> {
    /// The result, once its image is kept with the session, and the image as a part of it. A session that has too
    /// many images takes no more: then the result says so.
    pub(super) async fn kept(
        &self,
        mut rendered: Rendered,
    ) -> Result<(Rendered, Option<Part>), TurnError> {
        let Some((format, bytes)) = rendered.image.take() else {
            return Ok((rendered, None));
        };
        let (media_type, size) = (format.media_type().to_owned(), bytes.len() as u64);
        match self.site.ports.log.keep_image(&media_type, bytes).await {
            Ok(digest) => {
                let image = Part::Image {
                    digest,
                    media_type,
                    bytes: size,
                };
                Ok((rendered, Some(image)))
            }
            Err(LogError::Refused(why)) => Ok((Rendered::failed(why), None)),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn done(&self, rendered: Rendered, times: Times) -> Done {
        self.done_with(rendered, times, Beside::default())
    }

    pub(super) fn done_with(&self, rendered: Rendered, times: Times, beside: Beside) -> Done {
        let CallPlace {
            turn,
            step,
            ordinal,
        } = self.site.place;
        let (text, findings) = match &self.plan {
            Ok(plan) => guarded::guarded(plan.tool.name(), rendered.text),
            Err(_) => (rendered.text, Vec::new()),
        };
        let text = match &self.changed {
            Some(command) => format!("[the user had this run instead: {command}]\n{text}"),
            None => text,
        };
        let event = Event::CallEnded {
            turn,
            step,
            ordinal,
            outcome: rendered.outcome,
            parts: Parts::text(text),
            unplaced: beside.unplaced,
            task: beside.task,
            awaits: beside.awaits,
            budget_ms: millis(times.budget),
            duration_ms: millis(times.duration),
            overran: times.duration > times.budget,
            file: beside.file,
            whole: beside.whole,
            findings,
            tools: beside.tools,
        };
        Done {
            event,
            before: None,
            end: None,
            left: None,
        }
    }
}

impl Done {
    /// Adds an image to the result.
    pub(super) fn show(&mut self, image: Option<Part>) {
        if let Event::CallEnded { parts, .. } = &mut self.event {
            parts.0.extend(image);
        }
    }

    /// Takes from the listener what to do with the operation when the call's end is recorded.
    pub(super) fn take(&mut self, conclusion: Conclusion, listener: Listener<'_>) {
        let (operation, events, token) = listener.into_parts();
        match (conclusion.into_outcome(), token) {
            (Some(outcome), Some(token)) => {
                self.end = Some(End {
                    operation,
                    outcome,
                    token,
                });
            }
            (Some(_), None) => {}
            (None, _) => self.left = Some(Left { operation, events }),
        }
    }
}

impl From<Done> for Ran {
    fn from(done: Done) -> Self {
        Self::Ended(Box::new(done))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
