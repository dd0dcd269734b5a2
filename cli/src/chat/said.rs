//! What a person says while a turn works: each line is sent at once, or waits for the end of the turn.

use shared_api::CommandDone;
use shared_client::ClientError;
use shared_types::WhileWorking;

use super::{
    Chat, Later, bang, check, command, images,
    slash::{self, Line},
    turn::Answer,
};

/// Most lines that wait for the end of a turn.
const LATER_AT_MOST: usize = 64;

/// The action that a line asks for while a turn works.
pub(super) enum Said {
    /// The line is sent; this is the server's answer, once it comes.
    Sending(Answer<CommandDone>),
    /// The turn is to stop.
    Stop,
    /// Nothing now.
    Nothing,
}

/// Does what a line says that was typed while a turn works.
pub(super) fn say(chat: &mut Chat, line: &str) -> anyhow::Result<Said> {
    let client_id = chat.client.new_client_id();
    match slash::parse(line) {
        Line::Empty => Ok(Said::Nothing),
        Line::Command("/stop") => Ok(Said::Stop),
        Line::Command(line) if command::is_between_turns(chat, line) => wait(chat, line),
        Line::Command(line) => Ok(Said::Sending(command::send(chat, line, client_id))),
        Line::Run(script) => bang::begin_beside_turn(chat, script).map(|()| Said::Nothing),
        // The prompt after the turn adds its images.
        Line::Message(text) if images::are_named(text) => wait(chat, line),
        Line::Message(text) => {
            check(text)?;
            let (client, session) = (chat.client.clone(), chat.session.id);
            let text = text.to_owned();
            Ok(Said::Sending(Box::pin(async move {
                let steers = WhileWorking::Steer;
                let sending = client.send_while_working(session, &text, steers, &client_id);
                Ok(CommandDone {
                    message: Some(sending.await?),
                    ..CommandDone::default()
                })
            })))
        }
    }
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
    sent: Result<CommandDone, ClientError>,
) -> anyhow::Result<()> {
    match sent {
        Ok(done) => {
            command::take(chat, &done)?;
            let turn = done.message.filter(|message| !message.steered);
            chat.later
                .extend(turn.map(|message| Later::Turn(message.turn)));
            Ok(())
        }
        Err(error) => chat.view.aside(&crate::told(&error.into(), chat.advice)),
    }
}
