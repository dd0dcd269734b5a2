//! The pages of lists, which clients read alike for every list.

use shared_types::SessionEvent;

use crate::{
    Approval, Approvals, AuditEntry, AuditLog, Events, JoinTokens, Key, Keys, ListedJoinToken,
    Operation, Operations, People, Person, Runner, Runners, Sandbox, Sandboxes, Session, Sessions,
    Task, Tasks, TurnUsage, TurnUsages,
};

/// A part of a list.
pub trait Page {
    /// The items of the list.
    type Item;

    /// The items of the page, and the value of `after` for the next page, if there is one.
    fn into_parts(self) -> (Vec<Self::Item>, Option<String>);
}

macro_rules! pages {
    ($($page:ident . $items:ident: $item:ty;)*) => {$(
        impl Page for $page {
            type Item = $item;

            fn into_parts(self) -> (Vec<$item>, Option<String>) {
                (self.$items, self.next)
            }
        }
    )*};
}

pages! {
    Approvals.approvals: Approval;
    AuditLog.entries: AuditEntry;
    Events.events: SessionEvent;
    JoinTokens.join_tokens: ListedJoinToken;
    Keys.keys: Key;
    Operations.operations: Operation;
    People.people: Person;
    Runners.runners: Runner;
    Sandboxes.sandboxes: Sandbox;
    Sessions.sessions: Session;
    Tasks.tasks: Task;
    TurnUsages.turns: TurnUsage;
}
