//! A session's log, as a conversation would have shown it.

use shared_client::{Client, Followed};
use shared_types::{SessionId, limits::MAX_EVENTS_PAGE};

use crate::{screen::Screen, view::View};

pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    session: SessionId,
    json: bool,
) -> anyhow::Result<()> {
    let mut view = View::new(screen, session, json);
    let mut after = 0;
    loop {
        let page = client.events(session, after, MAX_EVENTS_PAGE).await?;
        let Some(last) = page.events.last() else {
            break;
        };
        after = last.seq;
        for event in page.events {
            view.show(&Followed::Event(Box::new(event)))?;
        }
        if !page.more {
            break;
        }
    }
    if client.session(session).await?.running_turn.is_some() {
        screen.note(&format!(
            "a turn is under way; stop it with: gantry cancel {session}"
        ));
    }
    Ok(())
}
