//! Sending messages and watching what comes of them.

use anyhow::bail;
use shared_api::{Me, Session};
use shared_client::Client;
use shared_types::limits::MAX_MESSAGE_BYTES;

use crate::{
    args,
    exit::Exit,
    pick::{self, SessionName},
    screen::Screen,
    view::View,
    watch::Watch,
};

mod conversation;
mod pin;
mod piped;
mod prompt;
mod recent;
mod slash;
mod turn;

/// A session that is being talked in.
struct Chat {
    client: Client,
    screen: Screen,
    session: Session,
    watch: Watch,
    view: View,
}

/// Sends one message and shows its turn, or holds a conversation.
pub(crate) async fn run(client: Client, screen: Screen, args: args::Chat) -> anyhow::Result<Exit> {
    let text = message(screen, &args.text).await?;
    let me = client.me().await?;
    if !args.json
        && let Some(label) = practice_label(&me)
    {
        screen.line(&screen.style().dim(label))?;
    }
    let session = session(&client, &args).await?;
    if text.is_none() && is_resumed(&args) && !args.json {
        screen.print(&recent::shown(&client, &session, screen.style()).await?)?;
    }
    let mut chat = Chat::open(client, screen, session, args.json);
    match text {
        Some(text) => turn::run(&mut chat, &text, false).await,
        None => {
            if is_resumed(&args) {
                chat.view.runs(&chat.client.tasks(chat.session.id).await?)?;
            }
            conversation::run(&mut chat, &me).await
        }
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
            watch: Watch::begin(client.clone(), session.id, session.last_seq),
            view: View::new(screen, session.id, json),
            client,
            screen,
            session,
        }
    }
}

async fn session(client: &Client, args: &args::Chat) -> anyhow::Result<Session> {
    let known = match &args.session {
        Some(name) => pick::session(client, name).await?,
        None if args.resume => pick::session(client, &SessionName::Last).await?,
        None => return begin(client, args.runner.as_deref()).await,
    };
    let Some(runner) = &args.runner else {
        return Ok(known);
    };
    pin::set(client, known.id, runner).await?;
    Ok(client.session(known.id).await?)
}

/// A new session, pinned to a runner where one is named.
async fn begin(client: &Client, runner: Option<&str>) -> anyhow::Result<Session> {
    Ok(match runner {
        None | Some(pin::NONE) => client.create_session("").await?,
        Some(name) => {
            let runners = client.runners().await?;
            let runner = pick::runner(&runners, name)?.id.to_string();
            client.create_session_on(&runner, "").await?
        }
    })
}

fn is_resumed(args: &args::Chat) -> bool {
    args.resume || args.session.is_some()
}

/// The message on the command line and in standard input; `None` where a conversation is wanted.
async fn message(screen: Screen, words: &[String]) -> anyhow::Result<Option<String>> {
    if words.is_empty() {
        return Ok(None);
    }
    let text = piped::message(screen, words).await?;
    check(&text)?;
    Ok(Some(text))
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
