//! `gantry --print`: one message for a script. No person is asked, standard output has the answer alone, and the exit
//! code says what became of it.

mod schema;
mod turn;

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use shared_api::SendMessage;
use shared_client::Client;
use shared_types::{
    SessionId, TurnId, WhileWorking,
    event::{Terms, TurnOutcome},
};

use self::{schema::Schema, turn::Told};
use super::{check, piped, session};
use crate::{
    args::{Output, Print},
    exit::Exit,
    screen::Screen,
};

/// The exit code where something needed consent, and no person could be asked.
const NEEDED_CONSENT: u8 = 3;

/// The exit code where the answer does not fit the schema.
const NO_FIT: u8 = 4;

/// The times that the model is asked again for an answer that fits.
const ASKED_AGAIN: usize = 2;

/// The object at the end.
#[derive(Serialize)]
struct Printed<'a> {
    session: SessionId,
    turn: TurnId,
    outcome: TurnOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    text: &'a str,
    /// The answer as the schema wants it.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Value>,
    steps: u32,
    /// Calls that needed consent and did not run.
    refused: &'a [String],
}

/// Sends one message, and prints the answer.
pub(crate) async fn run(
    client: Client,
    screen: Screen,
    args: Print,
    home: &Path,
) -> anyhow::Result<Exit> {
    let schema = args.schema.as_deref().map(Schema::read).transpose()?;
    let mut text = piped::message(screen, &args.text).await?;
    if let Some(schema) = &schema {
        text.push_str(&schema.wish());
    }
    check(&text)?;
    let session = session(&client, None, &args.chat(), home).await?;
    let mut after = session.last_seq;
    let (mut refused, mut asked) = (Vec::new(), 0);
    loop {
        let message = SendMessage {
            text,
            images: Vec::new(),
            compacts: None,
            terms: Terms {
                unattended: true,
                mode: args.mode,
                allow: args.allow.clone(),
                steps: args.max_steps,
                ..Terms::default()
            },
            while_working: WhileWorking::Queue,
            client_id: Some(client.new_client_id()),
        };
        let streams = args.output == Output::StreamJson;
        let mut told = turn::run(&client, screen, (session.id, after), &message, streams).await?;
        after = told.seq;
        refused.append(&mut told.refused);
        let fits = match (&schema, told.outcome) {
            (Some(schema), TurnOutcome::Completed) => Some(schema.value(&told.text)),
            _ => None,
        };
        if let Some(Err(why)) = &fits
            && asked < ASKED_AGAIN
        {
            asked += 1;
            text = schema::again(why);
            continue;
        }
        let value = fits.as_ref().and_then(|fits| fits.as_ref().ok());
        print(screen, args.output, session.id, &told, value, &refused)?;
        if let Some(Err(why)) = &fits {
            screen.note(&format!(
                "gantry: the answer does not fit the schema: {why}"
            ));
        }
        return Ok(exit(&told, matches!(fits, Some(Err(_))), &refused));
    }
}

fn print(
    screen: Screen,
    output: Output,
    session: SessionId,
    told: &Told,
    value: Option<&Value>,
    refused: &[String],
) -> anyhow::Result<()> {
    for call in refused {
        screen.note(&format!(
            "gantry: it needed consent, and did not run: {call}"
        ));
    }
    if let Some(reason) = &told.reason {
        screen.note(&format!("gantry: {reason}"));
    }
    match output {
        Output::Text => match value {
            Some(value) => screen.line(&serde_json::to_string_pretty(value)?),
            None if told.text.is_empty() => Ok(()),
            None => screen.line(&told.text),
        },
        Output::Json | Output::StreamJson => screen.json(&Printed {
            session,
            turn: told.turn,
            outcome: told.outcome,
            reason: told.reason.as_deref(),
            text: &told.text,
            value,
            steps: told.steps,
            refused,
        }),
    }
}

/// The exit code of a turn.
fn exit(told: &Told, misfits: bool, refused: &[String]) -> Exit {
    match told.outcome {
        TurnOutcome::Failed | TurnOutcome::Interrupted => Exit::Failed,
        TurnOutcome::Cancelled => Exit::Cancelled,
        TurnOutcome::Completed if !refused.is_empty() => Exit::Code(NEEDED_CONSENT),
        TurnOutcome::Completed if misfits => Exit::Code(NO_FIT),
        TurnOutcome::Completed => Exit::Done,
    }
}
