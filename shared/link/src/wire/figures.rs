//! How a runner is, as its heartbeats say it.

use proto::v1::{self, runner_frame};

use super::from_runner;

/// How a runner is, by its own word: for people and metrics. Nothing is decided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Operations that run now.
    pub operations_running: u64,
    /// Output that is kept on its disk until the server has it, in bytes.
    pub spool_bytes: u64,
    /// Room on the disk of its home, in bytes, as its user may have it.
    pub disk_free_bytes: u64,
}

/// The frame that says that the runner lives, and how it is where it knows that.
pub fn heartbeat(figures: Option<Figures>) -> v1::RunnerFrame {
    let figures = figures.map(|figures| v1::Figures {
        operations_running: figures.operations_running,
        spool_bytes: figures.spool_bytes,
        disk_free_bytes: figures.disk_free_bytes,
    });
    from_runner(runner_frame::Kind::Heartbeat(v1::Heartbeat { figures }))
}

/// What a heartbeat says. Any number is one: nothing is computed with it but sums that stop at the largest.
pub(crate) fn read_figures(wire: v1::Heartbeat) -> Option<Figures> {
    wire.figures.map(|figures| Figures {
        operations_running: figures.operations_running,
        spool_bytes: figures.spool_bytes,
        disk_free_bytes: figures.disk_free_bytes,
    })
}
