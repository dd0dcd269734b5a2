//! Shows those who watch a session what happens to the operation of one call.

use bytes::Bytes;
use shared_sandbox::OutputStream;
use shared_types::{OperationId, Timestamp, TurnId};

use crate::session::{Live, LiveSink};

/// The place of a call in its session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallPlace {
    pub(crate) turn: TurnId,
    pub(crate) step: u32,
    pub(crate) ordinal: u32,
}

/// Shows what happens to one operation.
pub(crate) struct Show<'a> {
    pub(crate) live: &'a dyn LiveSink,
    pub(crate) place: CallPlace,
    pub(crate) operation: OperationId,
}

impl Show<'_> {
    /// It wrote this.
    pub(crate) fn output(&self, stream: OutputStream, offset: u64, data: Bytes) {
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
    pub(crate) fn gap(&self, stream: OutputStream, from: u64, to: u64) {
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
    pub(crate) fn away(&self, runner: &str, since: Timestamp) {
        self.notice(format!("runner {runner} offline since {since:.0}; waiting"));
    }

    /// Its runner is there again.
    pub(crate) fn back(&self, runner: &str) {
        self.notice(format!("runner {runner} is back"));
    }

    fn notice(&self, text: String) {
        let turn = self.place.turn;
        self.live.publish(Live::Notice { turn, text });
    }
}
