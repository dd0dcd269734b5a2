//! The messages on the WebSocket, and the tickets that open it.

use serde::{Deserialize, Serialize};
use shared_types::{OperationId, SessionEvent, SessionId, Timestamp, Topic};

use crate::{Live, Problem};

messages! {
    /// Asks for a ticket.
    #[serde(deny_unknown_fields)]
    pub struct CreateStreamTicket {
        /// The operation whose stream the ticket opens; absent for `/api/v1/stream`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub operation: Option<OperationId>,
    }

    /// A ticket that opens one WebSocket, once.
    pub struct StreamTicket {
        /// The ticket; send it as `?ticket=` after the stream's address. It is shown once.
        pub ticket: String,
        /// The time at which it expires.
        pub expires_at: Timestamp,
    }
}

/// A message of the client on the WebSocket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ClientMessage {
    /// Sends every event of the session after `after`, then everything that happens.
    Subscribe {
        /// The session.
        session: SessionId,
        /// The number of the last event that the client has; 0 for none.
        after: u64,
    },
    /// Sends nothing more of this session.
    Unsubscribe {
        /// The session.
        session: SessionId,
    },
    /// Sends a hint whenever one of these lists may be different from now on. It replaces what was watched before; an
    /// empty list ends it.
    Watch {
        /// The lists. Those that the client may not read are left out.
        topics: Vec<Topic>,
    },
}

/// A message of the server on the WebSocket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ServerMessage {
    /// An event of the log, in order and without gaps.
    Event {
        /// The session.
        session: SessionId,
        /// The event.
        event: Box<SessionEvent>,
    },
    /// Unfinished work, which the log does not hold. Its result will be an event.
    Live {
        /// The session.
        session: SessionId,
        /// The unfinished work.
        live: Live,
    },
    /// All events up to this number were sent; later messages are new.
    CaughtUp {
        /// The session.
        session: SessionId,
        /// The number of the newest event.
        seq: u64,
    },
    /// These lists may be different from what the client last read: read them again by REST. Every `watch` is answered
    /// at once with all topics that are watched from then on. Later ones come at most every 250 ms, and at most every
    /// 5 s where only a figure or a time of last use has changed. Skip a topic that you do not know.
    Changed {
        /// The lists, each once.
        topics: Vec<Topic>,
        /// The sessions to which the hints about `sessions` and `approvals` are confined. Where it is absent, any
        /// session may have changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sessions: Option<Vec<SessionId>>,
    },
    /// A subscription could not be served, or a message was not understood.
    Problem {
        /// The session, where the client named one.
        session: Option<SessionId>,
        /// The problem.
        problem: Problem,
    },
    /// The last message before the server closes a working connection with code 1012, because the server stops or the
    /// connection is too old. Wait a random part of `within_ms`. Then connect again and subscribe with the last event
    /// that you have.
    Reconnect {
        /// The time, in milliseconds.
        within_ms: u32,
    },
}
