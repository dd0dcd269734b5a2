//! The runner's end of the link.
//!
//! [`OperationTable`] is the memory of operations and outlives every link; [`Session`] is one link, from
//! its challenge to its end. The driver writes down the table's [`Record`]s, performs what [`Act`] says
//! on a host, tells the table of output and ends, and sends the frames of both.

mod admission;
mod delivery;
mod memory;
mod orders;
mod passing;
mod record;
mod session;
mod table;

pub use crate::wire::{
    ANSWER_HEADERS, AnswerHead, AnswerPart, AskFailure, AskFailureKind, AskKind, Figures,
    MAX_ANSWER_HEADER_BYTES, MODELS_FEATURE, ModelOrder, ModelsReport, SandboxReport,
    heartbeat as heartbeat_frame, model_answer, models_report as models_frame,
    report as report_frame,
};
pub use delivery::{Spool, SpoolPiece};
pub use orders::{Incoming, Order, ReceivedFrame, SandboxOrder, received};
pub use record::{Accepted, Receipt, ReceiptBlock, Record, Records, Takes};
pub use session::{LinkEndReason, Session, Todo};
pub use table::{Act, LinkId, OpenedLink, OperationTable, Unfinished};
