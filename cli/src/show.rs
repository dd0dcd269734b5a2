//! A session's log, as a conversation would have shown it.

use anyhow::Context as _;
use shared_client::{Client, Followed};
use shared_types::{Event, SessionEvent, SessionId, limits::MAX_EVENTS_PAGE};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    exit::Exit,
    painted::Painted,
    screen::Screen,
    usage::TurnCosts,
    view::View,
    watch::{Watch, WatchEvent},
};

pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    session: SessionId,
    json: bool,
) -> anyhow::Result<()> {
    let costs = costs(client, session, json).await;
    match Painted::on(screen).filter(|_| !json) {
        Some(painted) => on_a_terminal(client, session, painted, costs.as_ref()).await?,
        None => {
            elsewhere(
                client,
                session,
                View::new(screen, session, json),
                costs.as_ref(),
            )
            .await?
        }
    }
    if client.session(session).await?.running_turn.is_some() {
        screen.note(&format!(
            "a turn is under way; stop it with: gantry cancel {session}"
        ));
    }
    Ok(())
}

/// The log as a terminal shows it.
async fn on_a_terminal(
    client: &Client,
    session: SessionId,
    mut painted: Painted,
    costs: Option<&TurnCosts>,
) -> anyhow::Result<()> {
    let mut after = 0;
    while let Some(page) = page(client, session, after).await? {
        for event in &page {
            after = event.seq;
            painted.event(event)?;
            if let (Some(Event::TurnEnded { turn, .. }), Some(costs)) = (event.known(), costs)
                && let Some(line) = costs.of(*turn, event.seq).await
            {
                painted.note(&line)?;
            }
        }
    }
    painted.end()
}

/// The log for a file, a pipe or a program.
async fn elsewhere(
    client: &Client,
    session: SessionId,
    mut view: View,
    costs: Option<&TurnCosts>,
) -> anyhow::Result<()> {
    let mut after = 0;
    while let Some(page) = page(client, session, after).await? {
        for event in page {
            after = event.seq;
            let item = Followed::Event(Box::new(event));
            view.show(&item)?;
            show_cost(&item, costs, &mut view).await?;
        }
    }
    Ok(())
}

/// The next events of a log; `None` behind the last one.
async fn page(
    client: &Client,
    session: SessionId,
    after: u64,
) -> anyhow::Result<Option<Vec<SessionEvent>>> {
    let page = client.events(session, after, MAX_EVENTS_PAGE).await?;
    Ok((!page.events.is_empty()).then_some(page.events))
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
    let costs = costs(&client, session, json).await;
    let mut watch = Watch::begin(client, session, 0);
    loop {
        let ticks = view.needs_ticks();
        let happened = tokio::select! {
            biased;
            _ = interrupts.recv() => break,
            happened = watch.next(ticks) => happened?,
        };
        watch.show(&happened, &mut view)?;
        if let WatchEvent::Session(item) = &happened {
            if let Followed::Event(event) = item {
                match event.known() {
                    Some(Event::InputAccepted { .. }) => view.wait(true)?,
                    Some(Event::TurnEnded { .. }) => view.wait(false)?,
                    _ => {}
                }
            }
            show_cost(item, costs.as_ref(), &mut view).await?;
        }
    }
    view.wait(false)?;
    Ok(Exit::Left)
}

/// The cost of the turns, for people.
async fn costs(client: &Client, session: SessionId, json: bool) -> Option<TurnCosts> {
    match json {
        true => None,
        false => Some(TurnCosts::ask(client, session).await),
    }
}

/// Shows the cost of a turn behind its end.
async fn show_cost(
    item: &Followed,
    costs: Option<&TurnCosts>,
    view: &mut View,
) -> anyhow::Result<()> {
    if let (Followed::Event(event), Some(costs)) = (item, costs)
        && let Some(Event::TurnEnded { turn, .. }) = event.known()
        && let Some(line) = costs.of(*turn, event.seq).await
    {
        view.cost(&line)?;
    }
    Ok(())
}
