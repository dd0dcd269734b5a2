//! Faults on cue: the points where a supervisor can be made to die, to stop, or to take its daemon
//! with it.
//!
//! Tests go through [`FaultPoint::ALL`], so that a point that is added is tested. A release build
//! takes no such order.

use std::{fmt, str::FromStr};

macro_rules! points {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A moment in the life of a supervisor.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FaultPoint {
            $($(#[$doc])* $name,)*
        }

        impl FaultPoint {
            /// All of them, in the order in which they come.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

points! {
    /// The place for its tree is made, and it is not written down whose that is.
    Placed = "placed",
    /// It is written down who supervises; there is no child yet.
    Identified = "identified",
    /// Its files are made and the child waits behind its gate; no other process knows that.
    Prepared = "prepared",
    /// The daemon knows that it waits.
    Waiting = "waiting",
    /// The request is read.
    Requested = "requested",
    /// The start record is written and not yet linked.
    StartWritten = "start-written",
    /// The fate is linked and the gate still closed.
    FateLinked = "fate-linked",
    /// The gate is open.
    GateOpened = "gate-opened",
    /// The daemon knows of the start.
    StartTold = "start-told",
    /// Some output is in the spool.
    OutputWritten = "output-written",
    /// The first process has ended and is not collected yet.
    ChildEnded = "child-ended",
    /// The output is complete and nothing runs any more.
    TreeGone = "tree-gone",
    /// The exit record is written and not yet linked.
    ExitWritten = "exit-written",
    /// The end is linked and the daemon does not know.
    ExitLinked = "exit-linked",
    /// The daemon knows of the end.
    ExitTold = "exit-told",
    /// It is asked to serve another command, and nothing is cleared away yet.
    AskedAgain = "asked-again",
    /// The records of the command before are cleared away, and there is no child yet.
    Cleared = "cleared",
}

/// The fault that happens there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultAction {
    /// The supervisor kills itself (SIGKILL).
    KillSupervisor,
    /// The supervisor stops itself (SIGSTOP).
    StopSupervisor,
    /// The supervisor kills its daemon (SIGKILL) and goes on.
    KillDaemon,
}

/// An order to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub point: FaultPoint,
    /// How.
    pub action: FaultAction,
}

impl Fault {
    /// The environment variable that carries it to a supervisor of a debug build.
    pub const VARIABLE: &str = "GANTRY_SUPERVISOR_FAULT";
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = match self.action {
            FaultAction::KillSupervisor => "kill-supervisor",
            FaultAction::StopSupervisor => "stop-supervisor",
            FaultAction::KillDaemon => "kill-daemon",
        };
        write!(f, "{}:{action}", self.point.as_str())
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        FaultPoint::ALL
            .iter()
            .flat_map(|point| {
                let actions = [
                    FaultAction::KillSupervisor,
                    FaultAction::StopSupervisor,
                    FaultAction::KillDaemon,
                ];
                actions.map(|action| Self {
                    point: *point,
                    action,
                })
            })
            .find(|fault| fault.to_string() == text)
            .ok_or_else(|| format!("there is no fault {text:?}"))
    }
}
