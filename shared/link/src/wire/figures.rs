//! A runner's figures, which its heartbeats carry.

use proto::v1::{self, runner_frame};

use super::from_runner;

/// A runner's figures by its own report, for people and metrics. No decision depends on them.
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

/// The figures in a heartbeat. Every number is accepted: numbers are only added up, and a sum stops
/// at the largest.
pub(crate) fn read_figures(wire: v1::Heartbeat) -> Option<Figures> {
    wire.figures.map(|figures| Figures {
        operations_running: figures.operations_running,
        spool_bytes: figures.spool_bytes,
        disk_free_bytes: figures.disk_free_bytes,
    })
}
