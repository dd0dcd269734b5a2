//! Watching a session: its log, its live events, and the output of its tasks.

use std::time::Duration;

use anyhow::Context as _;
use shared_client::{Attached, Client, ClientError, Follow, Followed};
use shared_types::{OperationId, SessionId};
use tokio::{sync::mpsc, task::JoinSet, time::sleep};

use crate::{
    render::{Begin, ToFollow},
    view::View,
};

/// Pieces of output that may wait for the terminal, of all tasks.
const QUEUE: usize = 16;

/// Of a task that began before, so many bytes before now are shown.
const LAST_BYTES: i64 = 1024;

/// The interval between checks for lines that were held back.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A session that is watched. Dropping it ends all its connections.
pub(crate) struct Watch {
    client: Client,
    session: SessionId,
    /// Absent once it has failed for good.
    follow: Option<Follow>,
    /// The last event that was heard.
    seq: u64,
    heard_of_tasks: mpsc::Receiver<HeardOfTask>,
    tell: mpsc::Sender<HeardOfTask>,
    followers: JoinSet<()>,
}

/// News of a task.
pub(crate) type HeardOfTask = (OperationId, Result<Attached, ClientError>);

/// An event of a watched session.
pub(crate) enum WatchEvent {
    Session(Followed),
    Task(HeardOfTask),
    /// Time passed.
    Tick,
}

impl Watch {
    /// Watches from behind this event on.
    pub(crate) fn begin(client: Client, session: SessionId, after: u64) -> Self {
        let (tell, heard_of_tasks) = mpsc::channel(QUEUE);
        Self {
            follow: Some(client.follow(session, after)),
            client,
            session,
            seq: after,
            heard_of_tasks,
            tell,
            followers: JoinSet::new(),
        }
    }

    /// Goes on from behind this event.
    pub(crate) fn go_on_from(&mut self, after: u64) {
        self.follow = Some(self.client.follow(self.session, after));
        self.seq = after;
    }

    /// Goes on where it failed, if it did.
    pub(crate) fn go_on(&mut self) {
        if self.follow.is_none() {
            self.go_on_from(self.seq);
        }
    }

    /// Waits for the next event; with `ticks` also for the next second. A caller may drop the
    /// future while it waits.
    ///
    /// # Errors
    /// Fails once the session cannot be followed any further. Later calls report only tasks.
    pub(crate) async fn next(&mut self, ticks: bool) -> anyhow::Result<WatchEvent> {
        let session = async {
            match &mut self.follow {
                Some(follow) => follow.next().await,
                None => std::future::pending().await,
            }
        };
        let item = tokio::select! {
            // The log's message about a task goes before the task's output.
            biased;
            item = session => item,
            Some(heard) = self.heard_of_tasks.recv() => return Ok(WatchEvent::Task(heard)),
            () = sleep(LOOK_AGAIN_AFTER), if ticks => return Ok(WatchEvent::Tick),
        };
        let item = item.context("failed to follow the session any further");
        let item = item.and_then(|item| item.context("failed to follow the session"));
        match item {
            Ok(item) => {
                if let Followed::Event(event) = &item {
                    self.seq = event.seq;
                }
                Ok(WatchEvent::Session(item))
            }
            Err(error) => {
                self.follow = None;
                Err(error)
            }
        }
    }

    /// Shows it, and follows the tasks that it began.
    pub(crate) fn show(&mut self, happened: &WatchEvent, view: &mut View) -> anyhow::Result<()> {
        match happened {
            WatchEvent::Session(item) => view.show(item)?,
            WatchEvent::Task((operation, item)) => view.task(*operation, item)?,
            WatchEvent::Tick => view.tick()?,
        }
        while self.followers.try_join_next().is_some() {}
        for task in view.begin_to_follow() {
            let (client, tell) = (self.client.clone(), self.tell.clone());
            self.followers.spawn(follow_task(client, task, tell));
        }
        Ok(())
    }
}

/// Passes on what a task writes, to its end.
pub(crate) async fn follow_task(client: Client, task: ToFollow, tell: mpsc::Sender<HeardOfTask>) {
    let mut follower = Follower {
        client,
        operation: task.operation,
        tell,
        failures: 0,
    };
    if let Err(error) = follower.follow(task.from).await {
        // If the receiver is gone, the task needs no watching any more.
        let _ = follower.tell.send((task.operation, Err(error))).await;
    }
}

struct Follower {
    client: Client,
    operation: OperationId,
    tell: mpsc::Sender<HeardOfTask>,
    failures: u32,
}

impl Follower {
    async fn follow(&mut self, from: Begin) -> Result<(), ClientError> {
        let mut have = match from {
            Begin::Offsets(offsets) => offsets,
            Begin::LastLines => [
                self.near_end("stdout").await?,
                self.near_end("stderr").await?,
            ],
        };
        loop {
            let (mut attach, _controls) = self.client.attach(self.operation, have[0], have[1]);
            while let Some(item) = attach.next().await {
                let item = match item {
                    Ok(item) => item,
                    Err(error) => {
                        self.wait_after(error).await?;
                        break;
                    }
                };
                self.failures = 0;
                match &item {
                    Attached::Output {
                        stream,
                        offset,
                        data,
                    } => have[*stream as usize] = offset + data.len() as u64,
                    Attached::Gap { stream, to, .. } => have[*stream as usize] = *to,
                    _ => {}
                }
                let is_end = matches!(item, Attached::Ended(_));
                if self.tell.send((self.operation, Ok(item))).await.is_err() || is_end {
                    return Ok(());
                }
            }
        }
    }

    /// An offset of a stream shortly before its end.
    async fn near_end(&mut self, stream: &str) -> Result<u64, ClientError> {
        loop {
            let asked = self.client.output(self.operation, stream, -LAST_BYTES);
            match asked.await {
                Ok(output) => return Ok(output.base),
                Err(error) => self.wait_after(error).await?,
            }
        }
    }

    /// # Errors
    /// Fails if another attempt cannot help.
    async fn wait_after(&mut self, error: ClientError) -> Result<(), ClientError> {
        if !error.is_passing() {
            return Err(error);
        }
        self.failures += 1;
        self.client.wait_again(self.failures, error).await
    }
}
