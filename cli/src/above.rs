//! Lines that are shown above a prompt while a person types behind it.
//!
//! The prompt takes a line while it waits for a key, and may hold up the thread that hands it over until
//! then. A line that comes in the moment in which a person ends theirs is shown by the next prompt.

use std::time::Duration;

use rustyline::ExternalPrinter;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

/// Pieces that may wait for the prompt.
const QUEUE: usize = 4;

/// The longest wait, after the prompt has ended, for lines that it was given to show.
const SHOWN_WITHIN: Duration = Duration::from_millis(100);

/// The thread that hands lines to the prompt.
#[derive(Debug)]
pub(crate) struct Above {
    queue: mpsc::Sender<Piece>,
}

#[derive(Debug)]
enum Piece {
    Lines(String),
    /// Everything before was handed over.
    Shown(oneshot::Sender<()>),
}

impl Above {
    pub(crate) fn start(mut printer: impl ExternalPrinter + Send + 'static) -> Self {
        let (queue, mut pieces) = mpsc::channel(QUEUE);
        std::thread::spawn(move || {
            while let Some(piece) = pieces.blocking_recv() {
                match piece {
                    Piece::Lines(lines) => {
                        if printer.print(lines).is_err() {
                            return;
                        }
                    }
                    // The prompt that asked may be gone.
                    Piece::Shown(done) => drop(done.send(())),
                }
            }
        });
        Self { queue }
    }

    /// Waits until there is room for another piece.
    pub(crate) async fn room(&self) {
        // If the thread has ended, this fails at once, and no wait is needed.
        let _ = self.queue.reserve().await;
    }

    /// Shows whole lines, for which there has to be room; what the prompt cannot show is lost.
    pub(crate) fn show(&self, lines: String) {
        let _ = self.queue.try_send(Piece::Lines(lines));
    }

    /// Waits until everything was handed over.
    pub(crate) async fn shown(&self) {
        let (done, shown) = oneshot::channel();
        let all = async {
            if self.queue.send(Piece::Shown(done)).await.is_ok() {
                let _ = shown.await;
            }
        };
        let _ = timeout(SHOWN_WITHIN, all).await;
    }
}
