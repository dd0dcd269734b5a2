//! The messages that people send to a session, and their turns.

use serde::{Deserialize, Serialize};
use shared_types::{Digest, TurnId, WhileWorking, event::Terms};

messages! {
    /// Sends a message.
    #[serde(deny_unknown_fields)]
    pub struct SendMessage {
        /// The message.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 262144, pattern = r"\S"))]
        pub text: String,
        /// The digests of images that belong to the message, in their order, at most 20. The session has them already.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, max_items = 20))]
        pub images: Vec<Digest>,
        /// Present if the message asks to compact the conversation, and is not for the model. It says what matters most
        /// in the conversation, and may be empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub compacts: Option<String>,
        /// The terms of the message for its turn.
        #[serde(default, skip_serializing_if = "Terms::is_none")]
        pub terms: Terms,
        /// The effect of the message on a turn of the session that works already; `queue` if absent. A message that asks
        /// to compact the conversation steers no turn: it waits.
        #[serde(default, skip_serializing_if = "is_queue")]
        pub while_working: WhileWorking,
        /// An idempotency key. Two messages of a session with the same key start one turn, or join it once.
        #[serde(default)]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        pub client_id: Option<String>,
    }

    /// The answer to an accepted message. Its turn runs even if the client disconnects.
    pub struct MessageAccepted {
        /// The turn that it started, or that it joined.
        pub turn: TurnId,
        /// True if it joined a turn that works: the model is sent it before its next answer.
        #[serde(default)]
        pub steered: bool,
        /// The number of the message's event.
        pub seq: u64,
    }

    /// An image of a session.
    pub struct SessionImage {
        /// The SHA-256 of its bytes, by which messages name it.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        pub digest: Digest,
        /// Its format, such as `image/png`.
        pub media_type: String,
        /// Its size, in bytes.
        pub bytes: u64,
    }

    /// The answer to a request to stop a turn; the server has stored the request.
    pub struct CancelAccepted {
        /// The turn that is being stopped; absent where no turn was running.
        pub turn: Option<TurnId>,
    }
}

fn is_queue(effect: &WhileWorking) -> bool {
    *effect == WhileWorking::Queue
}
