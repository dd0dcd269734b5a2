//! Asks of a runner's model server, and the models that it has.

use bytes::Bytes;
use proto::v1::{self, model_answer, model_ask, runner_frame, server_frame};
use shared_types::{
    TraceContext,
    clean::is_clean_line,
    limits::{MAX_RUNNER_MODEL_BYTES, MAX_RUNNER_MODELS, MODEL_PIECE_BYTES},
};

use super::{Malformed, from_runner, words};

/// The feature of a runner whose model server may be asked.
pub const MODELS_FEATURE: &str = "models";

/// The headers of an answer that are passed on: they tell how to read it, and when to ask again.
pub const ANSWER_HEADERS: [&str; 4] = ["content-type", "date", "retry-after", "retry-after-ms"];

/// Longest value of such a header, in bytes.
pub const MAX_ANSWER_HEADER_BYTES: usize = 256;

/// The request that a model server is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskKind {
    /// A `POST` to `chat/completions`.
    ChatCompletions,
}

/// An order of the server about an ask.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelOrder {
    /// Take the body, and send the request.
    Begin {
        /// The ask.
        ask: u64,
        /// The request; `None` for one that this build does not know.
        kind: Option<AskKind>,
        /// The length of the body.
        body_bytes: u64,
        /// The span of the call.
        trace: Option<TraceContext>,
    },
    /// The next piece of the body.
    Body {
        /// The ask.
        ask: u64,
        /// The piece.
        data: Bytes,
    },
    /// The server has room for the answer's data up to this offset.
    Credit {
        /// The ask.
        ask: u64,
        /// The first byte that there is no room for.
        up_to: u64,
    },
    /// End the request.
    Drop {
        /// The ask.
        ask: u64,
    },
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerPart {
    /// The first piece.
    Head(AnswerHead),
    /// The next bytes of the body.
    Data(Bytes),
    /// The body is whole.
    End,
    /// There is no (whole) answer.
    Failed(AskFailure),
}

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerHead {
    /// The HTTP status.
    pub status: u16,
    /// Some of its headers ([`ANSWER_HEADERS`]).
    pub headers: Vec<(String, String)>,
}

/// The reason why a model server did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskFailure {
    /// Its kind.
    pub kind: AskFailureKind,
    /// The reason, for people: one clean line.
    pub reason: String,
}

/// The kinds of [`AskFailure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskFailureKind {
    /// There is no connection to the model server.
    Unreachable,
    /// The connection ended in mid-answer, or brought no HTTP.
    Broken,
    /// The model server sent nothing for too long.
    Silent,
    /// The runner has as many asks as it takes.
    Busy,
    /// The body is too large, or not of the length that was said.
    Invalid,
    /// The runner does not know the ask, or has no model server.
    Unsupported,
}

/// The models of a runner's model server, by its report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelsReport {
    /// Their names.
    pub models: Vec<String>,
    /// The reason why they are not known now, for people; empty where they are. The names are then the last ones.
    pub problem: String,
}

impl ModelsReport {
    /// True for the name of a model that can be reported and chosen: a choice separates names by commas.
    pub fn is_model_name(name: &str) -> bool {
        (1..=MAX_RUNNER_MODEL_BYTES).contains(&name.len())
            && is_clean_line(name)
            && !name.contains(',')
    }

    /// These models and this problem, without what goes beyond the bounds.
    pub fn bounded(models: impl IntoIterator<Item = String>, problem: &str) -> Self {
        let models = models.into_iter().filter(|name| Self::is_model_name(name));
        Self {
            models: models.take(MAX_RUNNER_MODELS).collect(),
            problem: words(problem),
        }
    }
}

/// The frames of an ask, the last piece of its body included.
pub fn model_ask(
    ask: u64,
    kind: AskKind,
    body: &Bytes,
    trace: Option<TraceContext>,
) -> impl Iterator<Item = server_frame::Kind> + use<> {
    let kind = match kind {
        AskKind::ChatCompletions => model_ask::Kind::ChatCompletions,
    };
    let begin = server_frame::Kind::ModelAsk(v1::ModelAsk {
        ask,
        kind: kind.into(),
        body_bytes: body.len() as u64,
        traceparent: trace.map_or_else(String::new, |trace| trace.to_string()),
    });
    let body = body.clone();
    let pieces = (0..body.len()).step_by(MODEL_PIECE_BYTES).map(move |from| {
        let end = body.len().min(from + MODEL_PIECE_BYTES);
        let data = body.slice(from..end);
        server_frame::Kind::ModelAskBody(v1::ModelAskBody { ask, data })
    });
    std::iter::once(begin).chain(pieces)
}

/// The frame that grants more room for an answer.
pub fn model_credit(ask: u64, up_to: u64) -> server_frame::Kind {
    server_frame::Kind::ModelCredit(v1::ModelCredit { ask, up_to })
}

/// The frame that ends an ask.
pub fn model_drop(ask: u64) -> server_frame::Kind {
    server_frame::Kind::ModelDrop(v1::ModelDrop { ask })
}

/// The order in a frame; `None` if it is about another matter.
pub(crate) fn read_model_order(kind: &server_frame::Kind) -> Option<ModelOrder> {
    Some(match kind {
        server_frame::Kind::ModelAsk(wire) => ModelOrder::Begin {
            ask: wire.ask,
            kind: match wire.kind() {
                model_ask::Kind::ChatCompletions => Some(AskKind::ChatCompletions),
                model_ask::Kind::Unspecified => None,
            },
            body_bytes: wire.body_bytes,
            trace: wire.traceparent.parse().ok(),
        },
        server_frame::Kind::ModelAskBody(wire) => ModelOrder::Body {
            ask: wire.ask,
            data: wire.data.clone(),
        },
        server_frame::Kind::ModelCredit(wire) => ModelOrder::Credit {
            ask: wire.ask,
            up_to: wire.up_to,
        },
        server_frame::Kind::ModelDrop(wire) => ModelOrder::Drop { ask: wire.ask },
        _ => return None,
    })
}

/// The frame with a piece of an answer.
pub fn model_answer(ask: u64, part: AnswerPart) -> v1::RunnerFrame {
    let part = match part {
        AnswerPart::Head(head) => model_answer::Part::Head(model_answer::Head {
            status: head.status.into(),
            headers: (head.headers.into_iter())
                .map(|(name, value)| model_answer::Header { name, value })
                .collect(),
        }),
        AnswerPart::Data(data) => model_answer::Part::Data(data),
        AnswerPart::End => model_answer::Part::End(model_answer::End {}),
        AnswerPart::Failed(failure) => model_answer::Part::Failed(model_answer::Failure {
            kind: failure_to_wire(failure.kind).into(),
            reason: failure.reason,
        }),
    };
    from_runner(runner_frame::Kind::ModelAnswer(v1::ModelAnswer {
        ask,
        part: Some(part),
    }))
}

/// The piece of an answer in a frame; `None` for one that this build does not know.
pub(crate) fn read_model_answer(
    wire: v1::ModelAnswer,
) -> Result<Option<(u64, AnswerPart)>, Malformed> {
    let part = match wire.part {
        None => return Ok(None),
        Some(model_answer::Part::Head(head)) => AnswerPart::Head(read_head(head)?),
        Some(model_answer::Part::Data(data)) if data.len() > MODEL_PIECE_BYTES => {
            return Err(Malformed::new("a piece of a model's answer is too large"));
        }
        Some(model_answer::Part::Data(data)) => AnswerPart::Data(data),
        Some(model_answer::Part::End(_)) => AnswerPart::End,
        Some(model_answer::Part::Failed(failure)) => AnswerPart::Failed(AskFailure {
            kind: failure_from_wire(failure.kind()),
            reason: words(&failure.reason),
        }),
    };
    Ok(Some((wire.ask, part)))
}

fn read_head(wire: model_answer::Head) -> Result<AnswerHead, Malformed> {
    let status = u16::try_from(wire.status).ok();
    let status = status.filter(|status| (100..1000).contains(status));
    let headers = wire.headers.into_iter().filter(|header| {
        ANSWER_HEADERS.contains(&header.name.as_str())
            && header.value.len() <= MAX_ANSWER_HEADER_BYTES
    });
    Ok(AnswerHead {
        status: status.ok_or_else(|| Malformed::new("a model's answer has no status"))?,
        headers: headers
            .take(ANSWER_HEADERS.len())
            .map(|header| (header.name, header.value))
            .collect(),
    })
}

/// The frame that reports the models.
pub fn models_report(report: &ModelsReport) -> v1::RunnerFrame {
    from_runner(runner_frame::Kind::ModelsReport(v1::ModelsReport {
        models: report.models.clone(),
        problem: report.problem.clone(),
    }))
}

/// The report in a frame, without what goes beyond the bounds.
pub(crate) fn read_models_report(wire: v1::ModelsReport) -> ModelsReport {
    ModelsReport::bounded(wire.models, &wire.problem)
}

fn failure_to_wire(kind: AskFailureKind) -> model_answer::failure::Kind {
    use model_answer::failure::Kind;
    match kind {
        AskFailureKind::Unreachable => Kind::Unreachable,
        AskFailureKind::Broken => Kind::Broken,
        AskFailureKind::Silent => Kind::Silent,
        AskFailureKind::Busy => Kind::Busy,
        AskFailureKind::Invalid => Kind::Invalid,
        AskFailureKind::Unsupported => Kind::Unsupported,
    }
}

/// A kind that this build does not know reads as broken: it may pass.
fn failure_from_wire(kind: model_answer::failure::Kind) -> AskFailureKind {
    use model_answer::failure::Kind;
    match kind {
        Kind::Unreachable => AskFailureKind::Unreachable,
        Kind::Broken | Kind::Unspecified => AskFailureKind::Broken,
        Kind::Silent => AskFailureKind::Silent,
        Kind::Busy => AskFailureKind::Busy,
        Kind::Invalid => AskFailureKind::Invalid,
        Kind::Unsupported => AskFailureKind::Unsupported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ask_arrives_in_pieces_that_fit_and_whole() {
        let body = Bytes::from(vec![7; 2 * MODEL_PIECE_BYTES + 1]);
        let frames = model_ask(3, AskKind::ChatCompletions, &body, None);
        let mut orders = frames.map(|kind| read_model_order(&kind).expect("an order"));
        let begin = ModelOrder::Begin {
            ask: 3,
            kind: Some(AskKind::ChatCompletions),
            body_bytes: body.len() as u64,
            trace: None,
        };
        assert_eq!(orders.next(), Some(begin));
        let pieces: Vec<_> = orders
            .map(|order| match order {
                ModelOrder::Body { ask: 3, data } => data,
                other => panic!("another order: {other:?}"),
            })
            .collect();
        assert!(pieces.iter().all(|piece| piece.len() <= MODEL_PIECE_BYTES));
        assert_eq!(pieces.concat(), body);
    }

    #[test]
    fn an_answer_arrives_as_it_was_said() {
        let failed = AskFailure {
            kind: AskFailureKind::Silent,
            reason: "nothing came for 30 min".to_owned(),
        };
        let head = AnswerHead {
            status: 429,
            headers: vec![("retry-after".to_owned(), "7".to_owned())],
        };
        for part in [
            AnswerPart::Head(head),
            AnswerPart::Data(Bytes::from_static(b"data: {}")),
            AnswerPart::End,
            AnswerPart::Failed(failed),
        ] {
            let Some(runner_frame::Kind::ModelAnswer(wire)) = model_answer(1, part.clone()).kind
            else {
                panic!("another frame");
            };
            assert_eq!(read_model_answer(wire), Ok(Some((1, part))));
        }
    }

    #[test]
    fn of_a_report_only_names_are_taken_that_can_be_chosen_and_shown() {
        let long = "m".repeat(MAX_RUNNER_MODEL_BYTES + 1);
        let bad = ["", "a,b", "a\nb", "\x1b[2J", &long].map(str::to_owned);
        let many = (0..2 * MAX_RUNNER_MODELS).map(|number| format!("m{number}"));
        let report = ModelsReport::bounded(bad.into_iter().chain(many), "no\nanswer");
        assert_eq!(report.models.len(), MAX_RUNNER_MODELS);
        assert_eq!(report.models[0], "m0");
        assert_eq!(report.problem, "no⏎answer");
    }
}
