//! What a person says while a turn works: each line is sent at once, or waits for the end of the turn.

use anyhow::Context as _;
use shared_api::MessageAccepted;
use shared_types::WhileWorking;

use super::{
    Chat, Later, check, images,
    slash::{self, Line},
    turn::Answer,
};

/// Most lines that wait for the end of a turn.
const LATER_AT_MOST: usize = 64;

/// The action that a line asks for while a turn works.
pub(super) enum Said {
    /// The message is sent; this is the server's answer, once it comes.
    Sending(Answer<MessageAccepted>),
    /// The turn is to stop.
    Stop,
    /// Nothing now.
    Nothing,
}

/// Does what a line says that was typed while a turn works.
pub(super) fn say(chat: &mut Chat, line: &str) -> anyhow::Result<Said> {
    let (text, while_working) = match slash::parse(line) {
        Line::Empty => return Ok(Said::Nothing),
        Line::Stop => return Ok(Said::Stop),
        // The prompt after the turn adds its images.
        Line::Message(text) if images::are_named(text) => return wait(chat, line),
        Line::Message(text) => (text, WhileWorking::Steer),
        Line::Queue(text) => (text, WhileWorking::Queue),
        Line::Interrupt(text) => (text, WhileWorking::Interrupt),
        _ => return wait(chat, line),
    };
    check(text)?;
    let (client, session, text) = (chat.client.clone(), chat.session.id, text.to_owned());
    let client_id = client.new_client_id();
    Ok(Said::Sending(Box::pin(async move {
        let sending = client.send_while_working(session, &text, while_working, &client_id);
        sending.await
    })))
}

/// Has the line wait for the end of the turn.
fn wait(chat: &mut Chat, line: &str) -> anyhow::Result<Said> {
    if chat.later.len() >= LATER_AT_MOST {
        anyhow::bail!("{LATER_AT_MOST} lines wait already for the end of the turn");
    }
    chat.later.push_back(Later::Line(line.to_owned()));
    chat.view
        .aside(&format!("{line} waits for the end of the turn"))?;
    Ok(Said::Nothing)
}

/// Takes in the server's answer: a turn of the message's own is shown once this one is over.
pub(super) fn accepted(
    chat: &mut Chat,
    sent: Result<MessageAccepted, shared_client::ClientError>,
) -> anyhow::Result<()> {
    match sent.context("failed to send the message") {
        Ok(sent) if sent.steered => Ok(()),
        Ok(sent) => {
            chat.later.push_back(Later::Turn(sent.turn));
            Ok(())
        }
        Err(error) => chat.view.aside(&crate::told(&error, chat.advice)),
    }
}
