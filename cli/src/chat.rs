//! Sending messages and watching what comes of them.

use std::io::{IsTerminal as _, Read as _};

use anyhow::{Context as _, bail};
use shared_api::{Me, Session};
use shared_client::{Client, Follow};
use shared_types::limits::MAX_MESSAGE_BYTES;

use crate::{args, exit::Exit, screen::Screen, view::View};

mod conversation;
mod prompt;
mod slash;
mod turn;

/// A session that is being talked in.
struct Chat {
    client: Client,
    screen: Screen,
    session: Session,
    follow: Follow,
    view: View,
}

/// Sends one message and shows its turn, or holds a conversation.
pub(crate) async fn run(client: Client, screen: Screen, args: args::Chat) -> anyhow::Result<Exit> {
    let text = message(&args.text)?;
    let me = client.me().await?;
    if !args.json
        && let Some(label) = practice_label(&me)
    {
        screen.line(&screen.style().dim(label))?;
    }
    let session = session(&client, &args).await?;
    let mut chat = Chat::open(client, screen, session, args.json);
    match text {
        Some(text) => turn::run(&mut chat, &text, false).await,
        None => conversation::run(&mut chat, &me).await,
    }
}

/// What every surface says of the practice model.
pub(crate) fn practice_label(me: &Me) -> Option<&'static str> {
    me.model.practice.then_some("practice model (no AI)")
}

impl Chat {
    /// Follows a session from now on.
    fn open(client: Client, screen: Screen, session: Session, json: bool) -> Self {
        Self {
            follow: client.follow(session.id, session.last_seq),
            view: View::new(screen, session.id, json),
            client,
            screen,
            session,
        }
    }
}

async fn session(client: &Client, args: &args::Chat) -> anyhow::Result<Session> {
    if let Some(id) = args.session {
        return Ok(client.session(id).await?);
    }
    if !args.resume {
        return Ok(client.create_session("").await?);
    }
    let newest = client.sessions(1).await?.into_iter().next();
    newest.context("failed to go on: there is no session yet; leave out --continue")
}

/// The message on the command line; `None` where a conversation is wanted.
fn message(words: &[String]) -> anyhow::Result<Option<String>> {
    let text = match words {
        [] => return Ok(None),
        [dash] if dash == "-" => from_stdin()?,
        words => words.join(" "),
    };
    check(&text)?;
    Ok(Some(text))
}

fn from_stdin() -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        eprintln!("type the message, and end it with Ctrl-D");
    }
    let mut text = String::new();
    stdin
        .lock()
        .take(MAX_MESSAGE_BYTES as u64 + 1)
        .read_to_string(&mut text)
        .context("failed to read the message from standard input")?;
    Ok(text)
}

fn check(text: &str) -> anyhow::Result<()> {
    if text.trim().is_empty() {
        bail!("the message is empty: write what you want done");
    }
    if text.len() > MAX_MESSAGE_BYTES {
        bail!(
            "the message is longer than {} KiB: put it into a file on the runner and name the file",
            MAX_MESSAGE_BYTES / 1024
        );
    }
    Ok(())
}
