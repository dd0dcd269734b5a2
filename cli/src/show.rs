//! A session's log, as a conversation would have shown it.

use anyhow::Context as _;
use shared_client::{Client, Followed};
use shared_types::{Event, SessionId, limits::MAX_EVENTS_PAGE};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    exit::Exit,
    screen::Screen,
    view::View,
    watch::{Watch, WatchEvent},
};

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

/// The same, and then what happens from now on, until a person leaves with Ctrl-C.
pub(crate) async fn follow(
    client: Client,
    screen: Screen,
    session: SessionId,
    json: bool,
) -> anyhow::Result<Exit> {
    let mut interrupts = signal(SignalKind::interrupt()).context("failed to listen for Ctrl-C")?;
    let mut view = View::new(screen, session, json);
    let mut watch = Watch::begin(client, session, 0);
    loop {
        let ticks = view.needs_ticks();
        let happened = tokio::select! {
            biased;
            _ = interrupts.recv() => break,
            happened = watch.next(ticks) => happened?,
        };
        watch.show(&happened, &mut view)?;
        if let WatchEvent::Session(Followed::Event(event)) = &happened {
            match event.known() {
                Some(Event::InputAccepted { .. }) => view.wait(true)?,
                Some(Event::TurnEnded { .. }) => view.wait(false)?,
                _ => {}
            }
        }
    }
    view.wait(false)?;
    Ok(Exit::Left)
}
