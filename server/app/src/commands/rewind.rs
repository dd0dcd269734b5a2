//! The command that goes back to an earlier message.

use shared_types::{clean::clean_line, human::ago};

use super::{Asked, CommandDone, Commands, Shown};
use crate::{AppError, FilePutBack, GoBack};

/// Most messages that are listed: the newest.
const MESSAGES_AT_MOST: usize = 30;

/// Longest beginning of a message that is shown, in characters.
const BEGINNING_AT_MOST: usize = 60;

/// Longest name of a file that is shown, in characters.
const PATH_AT_MOST: usize = 200;

const USAGE: &str =
    "write /rewind NUMBER, with conversation, files or both behind it; /rewind lists your messages";

impl Commands {
    pub(super) async fn rewind(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let messages = self.rewinds.messages(asked.ctx, asked.id()).await?;
        if asked.words.is_empty() {
            if messages.is_empty() {
                return Ok(CommandDone::text("there is no message to go back to"));
            }
            let now = self.clock.now();
            let first = messages.len().saturating_sub(MESSAGES_AT_MOST);
            let rows = messages[first..].iter().map(|message| {
                vec![
                    message.number.to_string(),
                    ago(now.since(message.at)),
                    clean_line(&message.text, BEGINNING_AT_MOST),
                    message.files.to_string(),
                ]
            });
            return Ok(CommandDone::shown([
                Shown::Table {
                    columns: vec!["NUMBER", "SENT", "MESSAGE", "FILES CHANGED SINCE"],
                    rows: rows.collect(),
                },
                Shown::Text(
                    "/rewind NUMBER goes back to before a message, with the files; /rewind NUMBER \
                     conversation leaves the files"
                        .to_owned(),
                ),
            ]));
        }
        asked.by_a_person("go back with: POST /api/v1/sessions/{id}/rewind")?;
        let (number, what) = match asked.words.split_once(char::is_whitespace) {
            Some((number, what)) => (number, what.trim()),
            None => (asked.words, "both"),
        };
        let (conversation, files) = match what {
            "both" => (true, true),
            "conversation" => (true, false),
            "files" => (false, true),
            _ => return Err(AppError::Invalid(USAGE.to_owned())),
        };
        let number: u32 = number
            .parse()
            .map_err(|_| AppError::Invalid(USAGE.to_owned()))?;
        let message = messages.iter().find(|message| message.number == number);
        let Some(message) = message else {
            return Err(AppError::Invalid(format!(
                "there is no message {number}; /rewind lists them"
            )));
        };
        let back = GoBack {
            turn: message.turn,
            conversation,
            files,
        };
        let went = self.rewinds.go_back(asked.ctx, asked.id(), back).await?;
        let mut shown = Vec::new();
        if conversation {
            let text = clean_line(&went.text, BEGINNING_AT_MOST);
            shown.push(Shown::Text(format!("went back to before {text:?}")));
        }
        if files {
            shown.extend(put_back(&went.files));
        }
        Ok(CommandDone {
            draft: conversation.then_some(went.text),
            ..CommandDone::shown(shown)
        })
    }
}

/// The outcome for the files, in words.
fn put_back(files: &[FilePutBack]) -> Vec<Shown> {
    if files.is_empty() {
        return vec![Shown::Text("no call has changed a file since".to_owned())];
    }
    let rows = files.iter().map(|file| {
        let outcome = match &file.left {
            None => "as it was".to_owned(),
            Some(reason) => format!("left as it is: {reason}"),
        };
        vec![
            clean_line(&file.path, PATH_AT_MOST),
            file.runner.clone(),
            clean_line(&outcome, PATH_AT_MOST),
        ]
    });
    vec![
        Shown::Table {
            columns: vec!["FILE", "RUNNER", "NOW"],
            rows: rows.collect(),
        },
        Shown::Text("changes by commands are not put back".to_owned()),
    ]
}
