//! One small request, which tells if a model answers and what it can do.

use std::time::Duration;

use server_llm::{
    Breaker, Message, ModelError, ModelEvent, ModelRequest, Profile, ToolSpec, Vendor as _,
};
use shared_types::event::{Part, Parts};
use tokio::{sync::mpsc, time::timeout};

/// The longest that the request may take.
const WITHIN: Duration = Duration::from_secs(25);

/// The request: small, and with a tool that a model can be expected to use.
const ASKED: &str = "Call the tool `ping` once, with an empty object.";

/// The abilities that a model has shown, or that the catalogue knows of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// The model that was asked.
    pub model: String,
    /// The model that answered, as the vendor says; empty if it does not say.
    pub answered: String,
    /// True if the answer came in pieces.
    pub streams: bool,
    /// True if it called the tool.
    pub calls_tools: bool,
    /// True if it told thoughts.
    pub thinks: bool,
    /// True if it can read images, by the catalogue.
    pub sees: bool,
    /// The time from the request to the end of the answer.
    pub duration: Duration,
}

/// Asks the model.
///
/// # Errors
/// If it does not answer.
pub(super) async fn probe(model: &Breaker) -> Result<Probed, ModelError> {
    let info = model.info();
    let request = ModelRequest {
        messages: vec![Message::User {
            parts: Parts::text(ASKED),
        }],
        tools: vec![ToolSpec {
            name: "ping".to_owned(),
            description: "Tells the server that tools work.".to_owned(),
            parameters: serde_json::json!({ "type": "object", "properties": {} }),
            aliases: Vec::new(),
        }],
        ..ModelRequest::default()
    };
    let began = tokio::time::Instant::now();
    let (events, mut heard) = mpsc::channel(64);
    let pieces = async {
        let mut pieces = 0;
        while let Some(event) = heard.recv().await {
            pieces += u32::from(matches!(event, ModelEvent::Said(_)));
        }
        pieces
    };
    let asking = async {
        let answer = model.attempt(&request, &events).await;
        drop(events);
        answer
    };
    let both = async { tokio::join!(asking, pieces) };
    let (answer, pieces) = timeout(WITHIN, both).await.map_err(|_| {
        ModelError::TimedOut(format!(
            "the model did not answer within {} s: try again later",
            WITHIN.as_secs()
        ))
    })?;
    let answer = answer.map_err(|failure| failure.error)?;
    let Profile { model, sees, .. } = info.profile;
    Ok(Probed {
        model,
        answered: answer.model,
        // A call has no pieces that are shown, and came all the same.
        streams: pieces > 0 || answer.first_byte.is_some(),
        calls_tools: answer.parts.calls().next().is_some(),
        thinks: answer
            .parts
            .0
            .iter()
            .any(|part| matches!(part, Part::Reasoning { .. })),
        sees,
        duration: began.elapsed(),
    })
}
