//! The rights of subjects: one pure function, and the table that it reads (docs/rights.md).
//!
//! An action that the table does not name is refused. A role bounds what a person may do, and the scopes
//! of a credential bound it further, so a request needs both. Conversations, operations and keys belong
//! to one person: no role reads another person's.

use std::fmt;

use server_store::{Role, Scope, Scopes};
use shared_types::UserId;

use self::Role::{Admin, Member, Owner, Viewer};

/// The user of a request, with its role and scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RightSubject {
    /// The person or service account.
    pub user: UserId,
    /// The role, which bounds its rights.
    pub role: Role,
    /// The scopes of its credential, which bound them further.
    pub scopes: Scopes,
}

/// The object of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Something that was not looked up yet: refused where no answer could change that, so that the
    /// refusal does not tell whether it exists.
    Unknown,
    /// An object that the subject makes or lists, or one of the tenant's that has no owner.
    Own,
    /// A session, an operation, a runner or a key.
    Thing {
        /// Its owner.
        owner: UserId,
        /// True if it is shared with the subject.
        shared: bool,
    },
    /// A person.
    Person {
        /// The person's id.
        id: UserId,
        /// The role that the person has, or gets.
        role: Role,
    },
}

/// The actions that need a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// See who one is, and what the server speaks.
    SeeAccount,
    /// List and read sessions and their background commands.
    ReadSession,
    /// Begin a session.
    BeginSession,
    /// Pin a session to a runner.
    PinSession,
    /// Rename a session, or put it out of the list.
    ChangeSession,
    /// Make and end links by which strangers read a session.
    ShareSession,
    /// Delete a session.
    DeleteSession,
    /// Send a message.
    SendMessage,
    /// Stop a turn.
    CancelTurn,
    /// See the questions of one's agents.
    SeeApprovals,
    /// Answer a question of one's agent.
    AnswerApproval,
    /// List operations and read their output.
    ReadOperation,
    /// Start an operation.
    StartOperation,
    /// Follow an operation as it happens.
    FollowOperation,
    /// Pass input, sizes and signals on to an operation.
    PassInput,
    /// Stop an operation.
    CancelOperation,
    /// See that a runner is there.
    SeeRunner,
    /// Run something on a runner.
    UseRunner,
    /// Rename a runner, let it drain, or give it work again.
    ChangeRunner,
    /// Remove a runner.
    RemoveRunner,
    /// Let others use a runner, or not any more.
    ShareRunner,
    /// Become the owner of a runner.
    TakeRunner,
    /// Grant that what a runner reports of its isolation counts.
    TrustRunner,
    /// List sandboxes.
    SeeSandbox,
    /// Make, start, stop and remove a sandbox.
    ChangeSandbox,
    /// Change what a sandbox may use and reach.
    LimitSandbox,
    /// Make a token with which runners enrol.
    MakeJoinToken,
    /// List one's join tokens, and end them.
    EndJoinToken,
    /// See the settings that count for oneself and for one's sessions.
    SeeSettings,
    /// Change the settings of oneself and of one's sessions.
    ChangeSettings,
    /// Change the settings of the tenant.
    ChangeTenantSettings,
    /// List the people.
    SeePeople,
    /// Invite a person.
    InvitePerson,
    /// Change the role of a person.
    ChangeRole,
    /// Remove a person.
    RemovePerson,
    /// Add a service account.
    AddServiceAccount,
    /// List, make and end keys of a service account.
    ManageServiceKeys,
    /// List one's keys and sign-ins.
    SeeKeys,
    /// Make an API key.
    MakeKey,
    /// End a key or a sign-in.
    RevokeKey,
    /// See the usage of models by oneself.
    SeeUsage,
    /// See the usage of models by everyone.
    SeeTenantUsage,
    /// See the state of the server.
    SeeStatus,
    /// Read the audit log.
    ReadAudit,
    /// Read the server's metrics.
    ReadMetrics,
}

/// The reason of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The subject may not even know of it: it is answered like something that does not exist.
    Hidden,
    /// Its credential is not good for it.
    Scope {
        /// The action that was refused.
        action: Action,
        /// The scopes of the credential.
        has: Scopes,
    },
    /// Its role is too small.
    Role {
        /// The action that was refused.
        action: Action,
        /// Its role.
        has: Role,
        /// The least role that may do it.
        needs: Role,
    },
    /// A key would be good for more than its maker.
    KeyScope {
        /// The scope that it may not have.
        scope: Scope,
        /// The maker's role.
        has: Role,
        /// True if the maker's role forbids it; false if the maker's credential does.
        by_role: bool,
    },
    /// A key would be good for nothing.
    NoScope,
    /// It was shared with the subject for less than that.
    NotTheOwner {
        /// The action that was refused.
        action: Action,
    },
}

/// The needs of an action: one of these scopes, and the least role for a thing of one's own, a
/// shared one and a foreign one. None if no role will do.
struct Rule {
    scopes: &'static [Scope],
    own: Option<Role>,
    shared: Option<Role>,
    foreign: Option<Role>,
}

/// Checks that the subject may do this.
///
/// # Errors
/// If the subject may not.
pub fn allow(subject: &RightSubject, action: Action, resource: &Resource) -> Result<(), Denied> {
    let rule = action.rule();
    let least = match *resource {
        Resource::Unknown => rule.at_best(),
        Resource::Own => rule.own,
        Resource::Thing { owner, .. } if owner == subject.user => rule.own,
        Resource::Thing { shared: true, .. } => rule.shared,
        Resource::Thing { shared: false, .. } => rule.foreign,
        Resource::Person { id, role } => {
            let least = match id == subject.user {
                true => rule.own,
                false => rule.foreign,
            };
            // Only an owner makes, changes and removes owners.
            match (least, role, action) {
                (
                    Some(_),
                    Owner,
                    Action::InvitePerson | Action::ChangeRole | Action::RemovePerson,
                ) => Some(Owner),
                // An account that never signs in is not the one who can do everything.
                (_, Owner, Action::AddServiceAccount | Action::ManageServiceKeys) => None,
                _ => least,
            }
        }
    };
    let reaches =
        |least: Option<Role>| least.is_some_and(|least| rank(subject.role) >= rank(least));
    if let Resource::Thing { owner, .. } = *resource
        && !reaches(least)
    {
        // What cannot be seen is not told apart from what is not there.
        let scopes = Scopes::ALL;
        let seeing = RightSubject { scopes, ..*subject };
        match action.seen_by() {
            Some(seen) => allow(&seeing, seen, resource).map_err(|_| Denied::Hidden)?,
            None if owner == subject.user => {}
            None => return Err(Denied::Hidden),
        }
    }
    if !rule
        .scopes
        .iter()
        .any(|scope| subject.scopes.contains(*scope))
    {
        let has = subject.scopes;
        return Err(Denied::Scope { action, has });
    }
    match least {
        _ if reaches(least) => Ok(()),
        Some(_)
            if matches!(resource, Resource::Thing { shared: true, .. }) && reaches(rule.own) =>
        {
            Err(Denied::NotTheOwner { action })
        }
        Some(needs) => Err(Denied::Role {
            action,
            has: subject.role,
            needs,
        }),
        None => Err(Denied::Hidden),
    }
}

/// The scopes of a key that the subject makes: those that it asks for, else the usual ones as far as it
/// may give them.
///
/// # Errors
/// If the key would be good for more than its maker.
pub fn new_key(subject: &RightSubject, asked: Option<Scopes>) -> Result<Scopes, Denied> {
    let usual = [Scope::Chat, Scope::Runners, Scope::Exec, Scope::Read];
    let of_role: Scopes = match subject.role {
        Viewer => [Scope::Read].into_iter().collect(),
        Member => Scopes::ALL.without([Scope::Metrics].into_iter().collect()),
        Admin | Owner => Scopes::ALL,
    };
    let may = |scope: &Scope| of_role.contains(*scope) && subject.scopes.contains(*scope);
    let scopes = match asked {
        None => usual.into_iter().filter(may).collect(),
        Some(asked) => asked,
    };
    let more = scopes.iter().find(|scope| !may(scope));
    match more {
        Some(scope) => Err(Denied::KeyScope {
            scope,
            has: subject.role,
            by_role: !of_role.contains(scope),
        }),
        None if scopes.is_empty() => Err(Denied::NoScope),
        None => Ok(scopes),
    }
}

impl Denied {
    /// The reason, in a few words for the audit log.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Hidden => "not the subject's, nor shared with it".to_owned(),
            Self::Scope { has, .. } => format!("the key has {has}"),
            Self::Role { has, .. } => format!("the role is {has}"),
            Self::KeyScope { scope, .. } => format!("the maker may not give {scope}"),
            Self::NoScope => "no scope".to_owned(),
            Self::NotTheOwner { .. } => "not the owner".to_owned(),
        }
    }
}

impl Rule {
    /// The least role that may do it to anything.
    fn at_best(&self) -> Option<Role> {
        let all = [self.own, self.shared, self.foreign];
        all.into_iter().flatten().min_by_key(|role| rank(*role))
    }
}

/// Every role has the rights of those below it.
fn rank(role: Role) -> u8 {
    match role {
        Viewer => 0,
        Member => 1,
        Admin => 2,
        Owner => 3,
    }
}

/// A rule for what only its own person may do.
const fn own(scopes: &'static [Scope], least: Role) -> Rule {
    Rule {
        scopes,
        own: Some(least),
        shared: None,
        foreign: None,
    }
}

/// A rule for runners. Admins have all these rights.
const fn runners(scopes: &'static [Scope], own: Role, shared: Role) -> Rule {
    Rule {
        scopes,
        own: Some(own),
        shared: Some(shared),
        foreign: Some(Admin),
    }
}

/// A rule for sandboxes. They are never shared, and admins have all these rights.
const fn sandboxes(scopes: &'static [Scope], own: Role) -> Rule {
    Rule {
        scopes,
        own: Some(own),
        shared: None,
        foreign: Some(Admin),
    }
}

/// A rule for people: oneself, and others.
const fn people(scopes: &'static [Scope], own: Option<Role>, others: Role) -> Rule {
    Rule {
        scopes,
        own,
        shared: None,
        foreign: Some(others),
    }
}

impl Action {
    /// Every action, in the order of docs/rights.md.
    pub const ALL: &'static [Self] = &[
        Self::SeeAccount,
        Self::ReadSession,
        Self::BeginSession,
        Self::PinSession,
        Self::ChangeSession,
        Self::ShareSession,
        Self::DeleteSession,
        Self::SendMessage,
        Self::CancelTurn,
        Self::SeeApprovals,
        Self::AnswerApproval,
        Self::ReadOperation,
        Self::StartOperation,
        Self::FollowOperation,
        Self::PassInput,
        Self::CancelOperation,
        Self::SeeRunner,
        Self::UseRunner,
        Self::ChangeRunner,
        Self::RemoveRunner,
        Self::ShareRunner,
        Self::TakeRunner,
        Self::TrustRunner,
        Self::SeeSandbox,
        Self::ChangeSandbox,
        Self::LimitSandbox,
        Self::MakeJoinToken,
        Self::EndJoinToken,
        Self::SeeSettings,
        Self::ChangeSettings,
        Self::ChangeTenantSettings,
        Self::SeePeople,
        Self::InvitePerson,
        Self::ChangeRole,
        Self::RemovePerson,
        Self::AddServiceAccount,
        Self::ManageServiceKeys,
        Self::SeeKeys,
        Self::MakeKey,
        Self::RevokeKey,
        Self::SeeUsage,
        Self::SeeTenantUsage,
        Self::SeeStatus,
        Self::ReadAudit,
        Self::ReadMetrics,
    ];

    fn rule(self) -> Rule {
        use Scope::{Admin as Manage, Chat, Exec, Metrics, Read, Runners};
        match self {
            Self::SeeAccount | Self::SeeSettings => {
                own(&[Chat, Runners, Exec, Read, Manage], Viewer)
            }
            Self::ReadSession | Self::SeeApprovals | Self::SeeUsage => own(&[Chat, Read], Viewer),
            Self::BeginSession
            | Self::PinSession
            | Self::ChangeSession
            | Self::ShareSession
            | Self::DeleteSession
            | Self::SendMessage
            | Self::AnswerApproval => own(&[Chat], Member),
            Self::CancelTurn => own(&[Chat], Viewer),
            Self::ReadOperation | Self::FollowOperation => own(&[Chat, Exec, Read], Viewer),
            Self::StartOperation | Self::PassInput => own(&[Exec], Member),
            Self::CancelOperation => own(&[Chat, Exec], Viewer),
            Self::SeeRunner => runners(&[Chat, Runners, Exec, Read], Viewer, Viewer),
            Self::UseRunner => runners(&[Chat, Runners, Exec], Member, Member),
            Self::ChangeRunner | Self::RemoveRunner | Self::ShareRunner | Self::TakeRunner => {
                runners(&[Runners], Member, Admin)
            }
            Self::TrustRunner => runners(&[Runners], Admin, Admin),
            Self::SeeSandbox => sandboxes(&[Chat, Runners, Exec, Read], Viewer),
            Self::ChangeSandbox => sandboxes(&[Runners, Exec], Member),
            Self::LimitSandbox => sandboxes(&[Runners], Admin),
            Self::SeePeople => people(&[Chat, Runners, Exec, Read, Manage], Some(Viewer), Viewer),
            Self::InvitePerson => people(&[Manage], None, Admin),
            Self::ChangeRole => people(&[Manage], Some(Admin), Admin),
            Self::RemovePerson => people(&[Manage], Some(Viewer), Admin),
            Self::AddServiceAccount | Self::ManageServiceKeys => people(&[Manage], None, Admin),
            Self::MakeJoinToken => own(&[Runners], Member),
            Self::EndJoinToken => own(&[Runners], Viewer),
            Self::ChangeSettings => own(&[Chat, Manage], Member),
            Self::ChangeTenantSettings => own(&[Manage], Admin),
            Self::SeeKeys => own(&[Read, Manage], Viewer),
            Self::MakeKey | Self::RevokeKey => own(&[Manage], Viewer),
            Self::ReadAudit | Self::SeeTenantUsage => own(&[Manage], Admin),
            Self::SeeStatus => own(&[Read, Manage], Admin),
            Self::ReadMetrics => own(&[Metrics], Admin),
        }
    }

    /// The action that shows the things that this one is about.
    fn seen_by(self) -> Option<Self> {
        match self {
            Self::UseRunner
            | Self::ChangeRunner
            | Self::RemoveRunner
            | Self::ShareRunner
            | Self::TakeRunner
            | Self::TrustRunner => Some(Self::SeeRunner),
            Self::ChangeSandbox | Self::LimitSandbox => Some(Self::SeeSandbox),
            _ => None,
        }
    }

    /// The scopes that permit the action; a credential needs one of them.
    pub fn scopes(self) -> Scopes {
        self.rule().scopes.iter().copied().collect()
    }
}

/// The action, as it reads behind "to": "list runners".
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SeeAccount => "see the account",
            Self::ReadSession => "read sessions",
            Self::BeginSession => "begin a session",
            Self::PinSession => "pin a session",
            Self::ChangeSession => "rename or archive a session",
            Self::ShareSession => "share a session",
            Self::DeleteSession => "delete a session",
            Self::SendMessage => "send a message",
            Self::CancelTurn => "stop a turn",
            Self::SeeApprovals => "see the questions of agents",
            Self::AnswerApproval => "answer a question of an agent",
            Self::ReadOperation => "read operations",
            Self::StartOperation => "run something on a runner",
            Self::FollowOperation => "follow an operation",
            Self::PassInput => "send input or a signal",
            Self::CancelOperation => "stop an operation",
            Self::SeeRunner => "list runners",
            Self::UseRunner => "use a runner",
            Self::ChangeRunner => "rename or drain a runner",
            Self::RemoveRunner => "remove a runner",
            Self::ShareRunner => "share a runner",
            Self::TakeRunner => "take a runner",
            Self::TrustRunner => "trust a runner's isolation",
            Self::SeeSandbox => "list sandboxes",
            Self::ChangeSandbox => "make, start or remove a sandbox",
            Self::LimitSandbox => "limit a sandbox",
            Self::MakeJoinToken => "add a runner",
            Self::EndJoinToken => "list and end join tokens",
            Self::SeeSettings => "see settings",
            Self::ChangeSettings => "change a setting",
            Self::ChangeTenantSettings => "change a setting of the tenant",
            Self::SeePeople => "list people",
            Self::InvitePerson => "invite a person",
            Self::ChangeRole => "change a role",
            Self::RemovePerson => "remove a person",
            Self::AddServiceAccount => "add a service account",
            Self::ManageServiceKeys => "manage a service account's keys",
            Self::SeeKeys => "list keys",
            Self::MakeKey => "create a key",
            Self::RevokeKey => "revoke a key",
            Self::SeeUsage => "see the usage of models",
            Self::SeeTenantUsage => "see everyone's usage of models",
            Self::SeeStatus => "see the server's status",
            Self::ReadAudit => "read the audit log",
            Self::ReadMetrics => "read the metrics",
        })
    }
}

/// The fact, and what to do about it.
impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden => f.write_str("not found"),
            Self::Scope { action, has } => {
                let needs: Vec<_> = action
                    .scopes()
                    .iter()
                    .map(|scope| scope.to_string())
                    .collect();
                write!(
                    f,
                    "this key may not {action}: it needs the scope {}, and has {has}; make a key with \
                     that scope: gantry keys add NAME --scope {}",
                    needs.join(" or "),
                    needs.first().map_or("", String::as_str),
                )
            }
            Self::Role { action, has, needs } => {
                let giver = match needs {
                    Owner => "an owner",
                    _ => "an admin",
                };
                write!(
                    f,
                    "your role, {has}, may not {action}: that takes the role {needs}; ask {giver} for \
                     it (gantry people role NAME {needs})"
                )
            }
            Self::KeyScope {
                scope,
                has,
                by_role: true,
            } => write!(
                f,
                "your role, {has}, may not give a key the scope {scope}; leave it out, or ask an admin for \
                 another role (gantry people role NAME ROLE)"
            ),
            Self::KeyScope { scope, .. } => write!(
                f,
                "this key has not the scope {scope} itself, and may not give it to another; use one that \
                 has it, or sign in"
            ),
            Self::NoScope => f.write_str("a key needs a scope; name one with --scope"),
            Self::NotTheOwner { action } => {
                write!(
                    f,
                    "only its owner or an admin may {action}; ask one of them"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
