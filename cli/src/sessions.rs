//! Sessions: listing, naming, archiving, deleting and sharing them.

use anyhow::bail;
use shared_api::{ChangeSession, Session};
use shared_client::Client;
use shared_types::{
    Clock as _, SystemClock,
    human::{ago, duration},
};

use crate::{
    agreed::agreed,
    args::{ListSessions, Sessions},
    pick,
    render::clean::clean_line,
    screen::Screen,
    table::Table,
};

/// Longest title in a line, in characters.
const MAX_TITLE: usize = 60;

pub(crate) async fn run(client: &Client, screen: Screen, command: Sessions) -> anyhow::Result<()> {
    match command {
        Sessions::List(args) => list(client, screen, &args).await,
        Sessions::Rename { session, title } => {
            let title = ChangeSession {
                title: Some(title.join(" ")),
                archived: None,
            };
            let session = change(client, &session, &title).await?;
            screen.line(&format!("{} is {} now", session.id, quoted(&session)))
        }
        Sessions::Archive { session } => {
            let session = change(client, &session, &archived(true)).await?;
            screen.line(&format!(
                "archived {}; gantry sessions --archived lists it",
                quoted(&session)
            ))
        }
        Sessions::Unarchive {
            session: pick::SessionName::Last,
        } => bail!("`last` is never an archived session: gantry sessions --archived lists them"),
        Sessions::Unarchive { session } => {
            let session = change(client, &session, &archived(false)).await?;
            screen.line(&format!("{} is on the list again", quoted(&session)))
        }
        Sessions::Delete { session, yes } => {
            let session = pick::session(client, &session).await?;
            if !yes
                && !agreed(&format!(
                    "delete {} and all output of its commands",
                    quoted(&session)
                ))?
            {
                return screen.line("nothing was deleted");
            }
            client.delete_session(session.id).await?;
            screen.line(&format!("deleted {}", quoted(&session)))
        }
        Sessions::Share { session, valid_for } => {
            let session = pick::session(client, &session).await?;
            let link = client.share_session(session.id, valid_for).await?;
            let until = match link.expires_at {
                None => "until you end it".to_owned(),
                Some(at) => format!("for {}", duration(at.since(SystemClock::new().now()))),
            };
            screen.note(&format!(
                "everyone who has this link can read {} {until}; it is shown once:",
                quoted(&session)
            ));
            screen.line(&format!("{}{}", client.server(), link.path))?;
            screen.note(&format!(
                "end it with: gantry sessions unshare {}",
                session.id
            ));
            Ok(())
        }
        Sessions::Unshare { session } => {
            let session = pick::session(client, &session).await?;
            let links = client.unshare_session(session.id).await?;
            screen.line(&match links {
                0 => format!("{} had no links", quoted(&session)),
                1 => format!("ended the link to {}", quoted(&session)),
                links => format!("ended {links} links to {}", quoted(&session)),
            })
        }
    }
}

pub(crate) async fn list(
    client: &Client,
    screen: Screen,
    args: &ListSessions,
) -> anyhow::Result<()> {
    let search = args.search.as_deref().unwrap_or_default();
    let parent = match &args.agents {
        Some(session) => Some(pick::session_id(client, session).await?),
        None => None,
    };
    let sessions = client
        .sessions_found(search, args.archived, parent, args.limit)
        .await?;
    if args.json {
        return sessions.iter().try_for_each(|session| screen.json(session));
    }
    if sessions.is_empty() {
        screen.note(match args.archived {
            _ if args.search.is_some() => "no session has that in its title",
            _ if args.agents.is_some() => "this session has begun no agents",
            false => "no sessions yet; begin one with: gantry chat \"…\"",
            true => "no session is archived",
        });
        return Ok(());
    }
    let now = SystemClock::new().now();
    let mut table = Table::new(["SESSION", "LAST USED", "", "TITLE"]).whole(&[0]);
    for session in &sessions {
        table.row([
            session.id.to_string(),
            ago(now.since(session.updated_at)),
            state(session),
            clean_line(&session.title, MAX_TITLE),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))
}

fn state(session: &Session) -> String {
    let works = session.running_turn.map(|_| "working");
    let asks = (session.agent.is_some() && session.waiting_approvals > 0).then_some("asks you");
    let shared = (session.links > 0).then_some("shared");
    let words: Vec<_> = works.into_iter().chain(asks).chain(shared).collect();
    words.join(", ")
}

async fn change(
    client: &Client,
    name: &pick::SessionName,
    change: &ChangeSession,
) -> anyhow::Result<Session> {
    let id = pick::session_id(client, name).await?;
    Ok(client.change_session(id, change).await?)
}

fn archived(archived: bool) -> ChangeSession {
    ChangeSession {
        title: None,
        archived: Some(archived),
    }
}

fn quoted(session: &Session) -> String {
    match session.title.as_str() {
        "" => session.id.to_string(),
        title => format!("“{}”", clean_line(title, MAX_TITLE)),
    }
}
