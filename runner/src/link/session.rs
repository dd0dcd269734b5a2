//! One link, from its first frame to its last: drives [`shared_link::runner::Session`].

use std::{pin::pin, sync::Arc, time::Duration};

use proto::{
    PROTOCOL_VERSION,
    sealing::KeyPlace,
    v1::{self, runner_frame},
};
use shared_link::runner::{self, Figures, OpenedLink, Todo};
use shared_telemetry::runner::LINKED;
use shared_types::{Clock, Entropy, RunnerId};
use tokio::{
    sync::{mpsc, watch},
    task::{JoinHandle, spawn_blocking},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    LinkError,
    frames::{self, Outgoing, ServerFrames},
    hearing::Hearing,
};
use crate::{
    enrolment::{Proven, Reached},
    home::Home,
    key::{RunnerKey, ServerIdentity},
    model_server::{Asks, KnownModels, ModelServer},
    operations::{OperationsHandle, Unfinished},
    room::DiskRoom,
};

/// Frames that wait for the connection; with 64 KiB of output each this is half a mebibyte.
const FRAMES_WAITING: usize = 8;

/// Time for the goodbye to leave.
const GOODBYE_WITHIN: Duration = Duration::from_secs(1);

/// The runner's description of itself on every link.
#[derive(Debug, Clone)]
pub(crate) struct Introduction {
    pub(crate) runner: RunnerId,
    /// Whenever it changes, a new link is opened.
    pub(crate) capabilities: watch::Receiver<v1::Capabilities>,
}

/// The parts of the daemon that a link needs.
pub(crate) struct LinkContext<'a> {
    pub(crate) introduction: &'a Introduction,
    pub(crate) home: &'a Home,
    pub(crate) key: &'a RunnerKey,
    /// The server whose operations are carried out.
    pub(crate) server: &'a ServerIdentity,
    pub(crate) operations: &'a OperationsHandle,
    /// The room on the disk, as last seen.
    pub(crate) room: &'a watch::Receiver<Option<DiskRoom>>,
    pub(crate) model_server: Option<&'a ModelServer>,
    /// The models of that server, as last seen.
    pub(crate) models: &'a KnownModels,
    pub(crate) entropy: &'a Arc<dyn Entropy>,
    pub(crate) clock: &'a Arc<dyn Clock>,
    /// Ends the link politely.
    pub(crate) goodbye: &'a CancellationToken,
}

/// The progress of a link.
#[derive(Debug, Default)]
pub(crate) struct LinkProgress {
    /// The server has sent something on it.
    pub(crate) heard: bool,
    /// The time since which it served.
    pub(crate) welcomed: Option<Instant>,
    /// Writes down where it is, beside the link: a disk that hangs keeps no heartbeat back.
    pub(super) noting: Option<JoinHandle<()>>,
}

/// One link while it lives.
struct LiveLink<'a> {
    outgoing: mpsc::Sender<v1::RunnerFrame>,
    opened: &'a OpenedLink,
    reached: &'a Reached,
    /// Its times are counted from here.
    began: Instant,
    hearing: Hearing<'a>,
    /// The asks of the model server, which end with the link.
    asks: Asks,
    seals: KeyPlace<v1::RunnerFrame>,
    progress: &'a mut LinkProgress,
}

/// An event of a link.
enum LinkEvent {
    Frame(Box<v1::ServerFrame>),
    Time,
    /// The runner's description of itself has changed.
    News,
    Goodbye,
}

impl LinkContext<'_> {
    /// Links and serves until the link ends; only a polite end of ours is no error. The table of
    /// operations knows the link for exactly that long. `progress` says how far it came.
    pub(crate) async fn run(
        &self,
        proven: Proven,
        token: &str,
        progress: &mut LinkProgress,
    ) -> Result<(), LinkError> {
        let (outgoing, waiting) = mpsc::channel(FRAMES_WAITING);
        let entropy = self.entropy.as_ref();
        let seals = KeyPlace::default();
        let said = Outgoing::new(waiting, seals.clone());
        let mut incoming = frames::open(proven.wire, token, said, entropy).await?;
        let opened = self.operations.open_link(outgoing.clone()).await?;
        let mut link = LiveLink {
            asks: Asks::new(self.model_server.cloned(), outgoing.clone()),
            outgoing,
            opened: &opened,
            reached: &proven.reached,
            began: Instant::now(),
            hearing: Hearing::new(self.server, self.introduction.runner, token),
            seals,
            progress,
        };
        let served = self.serve(&mut incoming, &mut link).await;
        let outgoing = link.outgoing;
        drop(link.asks);
        // Before the table forgets that there is a link: without one, nothing can be forgotten.
        let for_good = self.has_nothing_left();
        self.operations.close_link(opened.link).await;
        let reason = served.as_ref().err().map(LinkError::to_string);
        tracing::info!(
            runner.id = %self.introduction.runner,
            reason = reason.as_deref().unwrap_or("the runner stops"),
            "runner disconnected"
        );
        let goodbye = match &served {
            Ok(()) => Some(("the runner stops", for_good)),
            Err(LinkError::Changed) => Some(("the runner serves other workspaces", false)),
            Err(_) => None,
        };
        if let Some((reason, for_good)) = goodbye {
            let left = leave(incoming, outgoing, reason, for_good);
            let _ = timeout(GOODBYE_WITHIN, left).await;
        }
        served
    }

    /// Nothing runs, and the server has stored all that did.
    fn has_nothing_left(&self) -> bool {
        *self.operations.unfinished().borrow() == Unfinished::default()
    }

    async fn serve(
        &self,
        incoming: &mut ServerFrames,
        link: &mut LiveLink<'_>,
    ) -> Result<(), LinkError> {
        let (began, outgoing) = (link.began, link.outgoing.clone());
        let mut session = runner::Session::new(Duration::ZERO);
        let mut capabilities = self.introduction.capabilities.clone();
        // The description that goes out when the link begins.
        capabilities.mark_unchanged();
        let (mut room, mut told_figures) = (self.room.clone(), false);
        let (mut models, mut told_models) = (self.models.report.clone(), false);
        loop {
            if !told_models && link.progress.welcomed.is_some() {
                let report = models
                    .borrow_and_update()
                    .as_ref()
                    .map(runner::models_frame);
                // Where frames wait already, it goes out behind them.
                told_models = report.is_none_or(|report| outgoing.try_send(report).is_ok());
            }
            if !told_figures && link.progress.welcomed.is_some() && self.figures().is_some() {
                // The first ones do not wait for a heartbeat.
                let _ = outgoing.try_send(runner::heartbeat_frame(self.figures()));
                told_figures = true;
            }
            let event = tokio::select! {
                frame = incoming.next() => {
                    let frame = frame.map_err(LinkError::of)?;
                    LinkEvent::Frame(Box::new(frame.ok_or(LinkError::Closed)?))
                }
                () = sleep_until(began + session.wake_at()) => LinkEvent::Time,
                Ok(()) = capabilities.changed() => LinkEvent::News,
                Ok(()) = room.changed(), if !told_figures => continue,
                Ok(()) = models.changed() => {
                    told_models = false;
                    continue;
                }
                () = self.goodbye.cancelled() => LinkEvent::Goodbye,
            };
            match event {
                LinkEvent::Frame(frame) => {
                    link.progress.heard = true;
                    let frame = link.hearing.open(*frame, self.clock.boot_time())?;
                    let todo = session.frame(frame, began.elapsed())?;
                    let mut done = pin!(self.carry_out(todo, link));
                    // No frame is read in that time: a server that sends orders but takes no
                    // answers is as good as silent. Where it would take them, the runner is slow
                    // itself.
                    loop {
                        tokio::select! {
                            done = &mut done => break done?,
                            () = sleep_until(began + session.wake_at()) => {
                                if outgoing.capacity() > 0 {
                                    session.is_busy(began.elapsed());
                                }
                                self.beat(&mut session, began, &outgoing)?;
                            }
                            () = self.goodbye.cancelled() => return Ok(()),
                        }
                    }
                }
                LinkEvent::Time => self.beat(&mut session, began, &outgoing)?,
                LinkEvent::News => return Err(LinkError::Changed),
                LinkEvent::Goodbye => return Ok(()),
            }
        }
    }

    /// Says that the runner lives, where it is time to.
    fn beat(
        &self,
        session: &mut runner::Session,
        began: Instant,
        outgoing: &mpsc::Sender<v1::RunnerFrame>,
    ) -> Result<(), LinkError> {
        let mut random = [0];
        self.entropy.fill(&mut random);
        // Where frames wait already, they are the sign of life.
        match session.tick(began.elapsed(), random[0], self.figures())? {
            Some(beat) => match outgoing.try_send(beat) {
                Err(mpsc::error::TrySendError::Closed(_)) => Err(LinkError::Closed),
                _ => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// The runner's figures, once the disk was looked at.
    fn figures(&self) -> Option<Figures> {
        let room = (*self.room.borrow())?;
        Some(Figures {
            operations_running: self.operations.unfinished().borrow().running as u64,
            spool_bytes: room.spool_bytes,
            disk_free_bytes: room.free_bytes,
        })
    }

    async fn carry_out(&self, todo: Todo, link: &mut LiveLink<'_>) -> Result<(), LinkError> {
        let answer = match todo {
            Todo::Introduce => self.introduce(link)?,
            Todo::Answer(answer) => *answer,
            Todo::Order(order) => {
                return Ok(self.operations.order(link.opened.link, order).await?);
            }
            Todo::Linked { generation } => {
                link.progress.welcomed = Some(Instant::now());
                LINKED.set(&[], 1.0);
                self.operations.welcomed(link.opened.link).await;
                self.models.look();
                let (home, reached) = (self.home.clone(), link.reached.to_string());
                let note = move || home.note_link(Some(&reached));
                link.progress.noting = Some(spawn_blocking(note));
                tracing::info!(
                    runner.id = %self.introduction.runner,
                    link.generation = generation,
                    server = %link.reached.server,
                    server.address = %link.reached.address,
                    transport = link.reached.transport.name(),
                    "runner connected"
                );
                return Ok(());
            }
            Todo::Model(order) => match link.asks.order(order) {
                Some(failure) => failure,
                None => return Ok(()),
            },
            Todo::Nothing => return Ok(()),
        };
        let sent = link.outgoing.send(answer).await;
        sent.map_err(|_| LinkError::Closed)
    }

    fn introduce(&self, link: &mut LiveLink<'_>) -> Result<v1::RunnerFrame, LinkError> {
        let opened = link.opened;
        let hello = v1::Hello {
            protocol_version: PROTOCOL_VERSION,
            software_version: env!("CARGO_PKG_VERSION").to_owned(),
            incarnation: Some((&opened.incarnation).into()),
            journal_sequence: opened.journal_sequence,
            capabilities: Some(self.introduction.capabilities.borrow().clone()),
            inventory: opened.inventory.clone(),
        };
        let entropy = self.entropy.as_ref();
        Ok(link.hearing.prove(hello, self.key, entropy, &link.seals)?)
    }
}

/// Says goodbye, and gives it and what was sent before it the time to leave.
async fn leave(
    mut incoming: ServerFrames,
    outgoing: mpsc::Sender<v1::RunnerFrame>,
    reason: &str,
    for_good: bool,
) {
    let goodbye = runner_frame::Kind::Goodbye(v1::Goodbye {
        reason: reason.to_owned(),
        for_good,
        ..v1::Goodbye::default()
    });
    let kind = Some(goodbye);
    let _ = outgoing.send(v1::RunnerFrame { kind }).await;
    drop(outgoing);
    while let Ok(Some(_)) = incoming.next().await {}
}
