//! Calls that put a shorter text in place of an old result, in what the model is sent.

use shared_types::Event;

use super::{TurnError, recall::compiled, site::Site, told::not_run};
use crate::{
    tools::{ContextAsk, ContextChangeAsk, Handle, Rendered},
    transcript::{Call, SentAs, Transcript},
};

/// The newest steps, whose results stay as they are.
const STEPS_STAY: usize = 3;

/// The fewest bytes that a change must gain: it breaks the vendor's cache.
const LEAST_GAIN: usize = 256;

/// The result of the call, and the event to be recorded with it.
pub(super) async fn run(
    site: &Site<'_>,
    ask: &ContextAsk,
) -> Result<(Rendered, Option<Event>), TurnError> {
    let transcript = Transcript::of(&site.ports.log.load().await?);
    Ok(match edited(&transcript, ask) {
        Err(why) => (not_run(why), None),
        Ok((was, text)) => {
            let handle = Handle::Result(ask.call);
            let told = format!(
                "{handle} is sent with {} bytes from now on; it had {was}",
                text.len()
            );
            let event = Event::ContextEdited {
                turn: site.place.turn,
                call: ask.call,
                text,
            };
            (Rendered::completed(told), Some(event))
        }
    })
}

/// The bytes of the result, and the text in its place.
fn edited(transcript: &Transcript, ask: &ContextAsk) -> Result<(usize, String), String> {
    let steps: Vec<_> = transcript
        .turns()
        .iter()
        .flat_map(|turn| &turn.steps)
        .collect();
    let (old, newest) = steps.split_at(steps.len().saturating_sub(STEPS_STAY));
    let is_it = |call: &&Call| call.number == ask.call;
    let handle = Handle::Result(ask.call);
    let Some(call) = old.iter().flat_map(|step| &step.calls).find(is_it) else {
        return Err(
            match newest
                .iter()
                .flat_map(|step| &step.calls)
                .any(|call| is_it(&call))
            {
                true => format!("{handle} is one of the newest results, which stay as they are"),
                false => format!("there is no result {handle}"),
            },
        );
    };
    let words = call.result.as_ref().map(|result| result.parts.words());
    let words = words.unwrap_or_default();
    let text = match &ask.change {
        ContextChangeAsk::Replace(text) => text.clone(),
        ContextChangeAsk::Keep(pattern) => {
            let pattern = compiled(pattern)
                .map_err(|error| format!("the pattern cannot be used: {error}"))?;
            let kept = words.lines().filter(|line| pattern.is_match(line));
            kept.map(|line| format!("{line}\n")).collect()
        }
    };
    let sent = match &call.sent {
        SentAs::Whole => words.len(),
        SentAs::Edited(text) => text.len(),
        SentAs::Masked { .. } => return Err(format!("{handle} is left out already")),
    };
    if call.number <= transcript.calls_gone() {
        return Err(format!("{handle} is left out already"));
    }
    if sent < text.len() + LEAST_GAIN {
        return Err(format!(
            "{handle} is sent with {sent} bytes now, and the new text has {}: that gains too little",
            text.len()
        ));
    }
    Ok((sent, text))
}
