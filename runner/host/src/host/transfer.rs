//! Whole files of any size, both ways. They take as long as their bytes do, so only their time to
//! run bounds them. An upload takes its turn only once all of it is there.

use std::{sync::Arc, time::Duration};

use shared_sandbox::{Download, Input, Outcome, Pack, Unpack, Upload};
use tokio::{sync::mpsc, task::spawn_blocking, time::sleep};
use tracing::Instrument as _;

use super::{Host, RequestEnd, lost, settled};
use crate::{
    HostEvent, Performing, Uploading,
    files::{self, Allowance, Announcer, stopped, too_slow},
    performing::{EVENTS_WAITING, Stopping},
};

/// Pieces of an upload that wait to be written; half a mebibyte, where they are large.
const PIECES_WAITING: usize = 8;

impl Host {
    /// Serves a whole file: tells when it is open, then its digest. As [`Host::perform`].
    pub fn download(&self, download: Download, run_for: Duration) -> Performing {
        let host = self.clone();
        perform("download", |events, stopping| async move {
            let served = Served::Download(download);
            host.served(served, run_for, events, stopping).await
        })
    }

    /// Serves many files in an archive: tells when it is whole, then its digest. As [`Host::perform`].
    pub fn pack(&self, pack: Pack, run_for: Duration) -> Performing {
        let host = self.clone();
        perform("pack", |events, stopping| async move {
            let served = Served::Pack(pack);
            host.served(served, run_for, events, stopping).await
        })
    }

    /// Takes a whole file. As [`Host::perform`]; it ends early once no sender of pieces is left.
    pub fn upload(&self, upload: Upload, run_for: Duration) -> Uploading {
        self.take("upload", Taken::Upload(upload), run_for)
    }

    /// Takes many files in an archive. As [`Host::upload`].
    pub fn unpack(&self, unpack: Unpack, run_for: Duration) -> Uploading {
        self.take("unpack", Taken::Unpack(unpack), run_for)
    }

    fn take(&self, kind: &'static str, taken: Taken, run_for: Duration) -> Uploading {
        let host = self.clone();
        let (pieces, waiting) = mpsc::channel(PIECES_WAITING);
        let performing = perform(kind, |events, stopping| async move {
            let done = host.taken(taken, run_for, waiting, events, stopping);
            done.await
                .unwrap_or_else(|failure| Outcome::from(failure).into())
        });
        Uploading { performing, pieces }
    }

    async fn served(
        &self,
        served: Served,
        run_for: Duration,
        events: mpsc::Sender<HostEvent>,
        stopping: Stopping,
    ) -> RequestEnd {
        let turn = async { Arc::clone(&self.reads).acquire_owned().await.ok() };
        let turn = match in_time(turn, run_for, stopping.clone()).await {
            Ok(turn) => turn,
            Err(failure) => return Outcome::from(failure).into(),
        };
        let allowance = Allowance::new(Arc::clone(&self.clock), run_for, stopping);
        let workspace = Arc::clone(&self.workspace);
        settled(spawn_blocking(move || {
            let hand_over = |file| {
                // The receiver may be gone, and that changes nothing.
                let _ = events.blocking_send(HostEvent::Opened(file));
            };
            let outcome = match &served {
                Served::Download(download) => {
                    files::download(download, &workspace, &allowance, hand_over)
                }
                Served::Pack(pack) => files::pack(pack, &workspace, &allowance, hand_over),
            };
            drop(turn);
            outcome.into()
        }))
        .await
    }

    async fn taken(
        &self,
        taken: Taken,
        run_for: Duration,
        pieces: mpsc::Receiver<Input>,
        events: mpsc::Sender<HostEvent>,
        stopping: Stopping,
    ) -> Result<RequestEnd, files::Failure> {
        let allowance = Allowance::new(Arc::clone(&self.clock), run_for, stopping.clone());
        let announcer = Announcer::new(events.clone());
        let workspace = Arc::clone(&self.workspace);
        let received = spawn_blocking(move || {
            let announced = taken.announced();
            let staged = files::receive(announced, pieces, &workspace, &allowance, |up_to| {
                let _ = events.blocking_send(HostEvent::InputTaken(up_to));
            });
            match staged {
                Ok(staged) => Ok((staged, taken, workspace, allowance)),
                Err(failure) => Err(failure.in_workspace(&workspace)),
            }
        });
        let (staged, taken, workspace, allowance) = match received.await {
            Ok(received) => received?,
            Err(error) => {
                tracing::error!(%error, "failed to receive a file");
                return Ok(lost("the runner failed inside; its log says how").into());
            }
        };
        let turn = in_time(
            self.changes.turn(
                &self.workspace,
                vec![files::Changed::File(taken.announced().path.to_owned())],
            ),
            run_for,
            stopping,
        );
        let held = turn.await?;
        let turn = held.clone();
        let put = spawn_blocking(move || {
            let put = match &taken {
                Taken::Upload(upload) => {
                    files::put(upload, &staged, &workspace, &allowance, &announcer)
                        .map(Outcome::Written)
                }
                Taken::Unpack(unpack) => {
                    files::unpack(unpack, &staged, &workspace, &allowance, &announcer)
                        .map(Outcome::Unpacked)
                }
            };
            drop(turn);
            let put = put.map_err(|failure| failure.in_workspace(&workspace));
            put.unwrap_or_else(Outcome::from).into()
        });
        let end = settled(put).await;
        Ok(RequestEnd { held, ..end })
    }
}

/// A request whose output is read.
enum Served {
    Download(Download),
    Pack(Pack),
}

/// A request whose input is taken.
enum Taken {
    Upload(Upload),
    Unpack(Unpack),
}

impl Taken {
    fn announced(&self) -> files::Announcement<'_> {
        match self {
            Self::Upload(upload) => upload.into(),
            Self::Unpack(unpack) => unpack.into(),
        }
    }
}

/// Performs it in a task of its own.
fn perform<W: Future<Output = RequestEnd> + Send + 'static>(
    kind: &'static str,
    work: impl FnOnce(mpsc::Sender<HostEvent>, Stopping) -> W,
) -> Performing {
    let (events, receiver) = mpsc::channel(EVENTS_WAITING);
    let (stop, stopping) = Stopping::pair();
    let work = tokio::spawn(work(events.clone(), stopping).in_current_span());
    let span = tracing::debug_span!("host.perform", request.kind = kind);
    tokio::spawn(
        async move {
            let _ = events.send(settled(work).await.into()).await;
        }
        .instrument(span),
    );
    Performing {
        events: receiver,
        stop,
    }
}

/// Waits for a turn.
async fn in_time<T>(
    turn: impl Future<Output = Option<T>>,
    limit: Duration,
    mut stopping: Stopping,
) -> Result<T, files::Failure> {
    tokio::select! {
        biased;
        _ = stopping.wanted() => Err(stopped()),
        turn = turn => turn.ok_or_else(stopped),
        () = sleep(limit) => Err(too_slow(limit)),
    }
}

#[cfg(test)]
mod tests;
