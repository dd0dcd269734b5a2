//! Shows those who watch a session what happens to the operation of one call.

use bytes::Bytes;
use shared_sandbox::OutputStream;
use shared_types::{OperationId, Timestamp, TurnId};

use crate::session::{Live, LiveSink};

/// The place of a call in its session.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallPlace {
    pub(super) turn: TurnId,
    pub(super) step: u32,
    pub(super) ordinal: u32,
}

/// Shows what happens to one operation.
pub(super) struct Show<'a> {
    pub(super) live: &'a dyn LiveSink,
    pub(super) place: CallPlace,
    pub(super) operation: OperationId,
}

impl Show<'_> {
    /// It wrote this.
    pub(super) fn output(&self, stream: OutputStream, offset: u64, data: Bytes) {
        let CallPlace {
            turn,
            step,
            ordinal,
        } = self.place;
        self.live.publish(Live::Output {
            turn,
            step,
            ordinal,
            operation: self.operation,
            stream,
            offset,
            data,
        });
    }

    /// This part of what it wrote is not kept any more.
    pub(super) fn gap(&self, stream: OutputStream, from: u64, to: u64) {
        let CallPlace {
            turn,
            step,
            ordinal,
        } = self.place;
        self.live.publish(Live::Gap {
            turn,
            step,
            ordinal,
            operation: self.operation,
            stream,
            from,
            to,
        });
    }

    /// Its runner is gone, and is waited for.
    pub(super) fn away(&self, runner: &str, since: Timestamp) {
        self.notice(format!("runner {runner} offline since {since:.0}; waiting"));
    }

    /// Its runner is there again.
    pub(super) fn back(&self, runner: &str) {
        self.notice(format!("runner {runner} is back"));
    }

    fn notice(&self, text: String) {
        let turn = self.place.turn;
        self.live.publish(Live::Notice { turn, text });
    }
}
