//! What the statements of a transaction have written, as far as people hear of it.

use std::collections::BTreeSet;

use server_records::{Change, Pace, Whose};
use shared_types::{CredentialId, OperationId, SessionId, TenantId, Topic, UserId};

use super::tables::{List, Readers, changes_rights, lists, written};

/// The most sessions, operations and people that one transaction tells of by name; everyone hears of more.
const NAMED_AT_MOST: usize = 32;

/// What one statement writes, taken before it is run.
#[derive(Debug)]
pub(crate) struct Statement {
    lists: Vec<List>,
    ids: Vec<Id>,
    subject: Whose,
    changes_rights: bool,
}

/// An id that a statement binds, which its prefix tells apart from other texts.
#[derive(Debug, Clone, Copy)]
enum Id {
    Tenant(TenantId),
    Session(SessionId),
    Operation(OperationId),
    Credential(CredentialId),
}

/// What a transaction has written.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    named: BTreeSet<(Topic, Whose, Pace)>,
    of_sessions: BTreeSet<(Topic, Pace)>,
    sessions: BTreeSet<SessionId>,
    tenants: BTreeSet<TenantId>,
    rights: bool,
}

impl Statement {
    /// `None` for one that changes no list. A text of a person's that looks like an id names another session at worst,
    /// whose person reads a list in vain.
    pub(crate) fn of<'v>(sql: &str, texts: impl Iterator<Item = &'v str> + Clone) -> Option<Self> {
        let written = written(sql);
        let changes_rights = written.iter().copied().any(changes_rights);
        let lists = written.into_iter().filter_map(lists).flatten();
        let lists: Vec<_> = lists.copied().collect();
        if lists.is_empty() && !changes_rights {
            return None;
        }
        let subject = texts.clone().nth(1).map_or(Whose::Everyone, subject);
        let ids = texts.filter_map(Id::read).collect();
        Some(Self {
            lists,
            ids,
            subject,
            changes_rights,
        })
    }
}

impl Id {
    fn read(text: &str) -> Option<Self> {
        let (prefix, _) = text.split_once('_')?;
        match prefix {
            TenantId::PREFIX => text.parse().map(Self::Tenant).ok(),
            SessionId::PREFIX => text.parse().map(Self::Session).ok(),
            OperationId::PREFIX => text.parse().map(Self::Operation).ok(),
            CredentialId::PREFIX => text.parse().map(Self::Credential).ok(),
            _ => None,
        }
    }
}

fn subject(text: &str) -> Whose {
    let user = text.parse::<UserId>().map(Whose::User);
    user.or_else(|_| text.parse().map(Whose::OfSession))
        .unwrap_or(Whose::Everyone)
}

impl Noted {
    /// The statement has changed rows.
    pub(crate) fn add(&mut self, statement: Statement) {
        let Statement {
            lists,
            ids,
            subject,
            changes_rights,
        } = statement;
        self.rights |= changes_rights;
        for id in &ids {
            match *id {
                Id::Tenant(tenant) => drop(self.tenants.insert(tenant)),
                Id::Session(session) => drop(self.sessions.insert(session)),
                Id::Operation(_) | Id::Credential(_) => {}
            }
        }
        for List {
            topic,
            readers,
            pace,
        } in lists
        {
            let owners = ids.iter().filter_map(|id| match (readers, *id) {
                (Readers::OfOperations, Id::Operation(id)) => Some(Whose::OfOperation(id)),
                (Readers::OfCredential, Id::Credential(id)) => Some(Whose::OfCredential(id)),
                _ => None,
            });
            let mut owners: Vec<_> = owners.collect();
            match readers {
                Readers::OfSessions => {
                    self.of_sessions.insert((topic, pace));
                    continue;
                }
                Readers::OfSubject => owners.push(subject),
                _ if owners.is_empty() => owners.push(Whose::Everyone),
                _ => {}
            }
            let named = owners.into_iter().map(|whose| (topic, whose, pace));
            self.named.extend(named);
        }
    }

    /// The tenants in which rights may be different: that of the transaction, else those that its statements name, or
    /// all.
    pub(crate) fn rights(&self, tenant: Option<TenantId>) -> Vec<Option<TenantId>> {
        match self.rights {
            false => Vec::new(),
            true => self.tenants_of(tenant),
        }
    }

    fn tenants_of(&self, tenant: Option<TenantId>) -> Vec<Option<TenantId>> {
        match tenant {
            Some(tenant) => vec![Some(tenant)],
            None if self.tenants.is_empty() => vec![None],
            None => self.tenants.iter().copied().map(Some).collect(),
        }
    }

    /// The hints of a transaction for this tenant; without one, for those that its statements name, or for all.
    pub(crate) fn changes(self, tenant: Option<TenantId>) -> Vec<Change> {
        let (in_tenant, tenants) = (tenant.is_some(), self.tenants_of(tenant));
        let Self {
            named,
            of_sessions,
            sessions,
            ..
        } = self;
        let mut all = BTreeSet::new();
        for (topic, pace) in of_sessions {
            match sessions.len() {
                0 => drop(all.insert((topic, Whose::Everyone, pace))),
                _ => all.extend(
                    sessions
                        .iter()
                        .map(|id| (topic, Whose::OfSession(*id), pace)),
                ),
            }
        }
        all.extend(named);
        // Work for all tenants is rare, and so is work on that much at once.
        if !in_tenant || all.len() > NAMED_AT_MOST {
            let everyone = all.into_iter();
            all = everyone
                .map(|(topic, _, pace)| (topic, Whose::Everyone, pace))
                .collect();
        }
        let changes = tenants.iter().flat_map(|tenant| {
            all.iter().map(|(topic, whose, pace)| Change {
                tenant: *tenant,
                topic: *topic,
                whose: *whose,
                pace: *pace,
            })
        });
        changes.collect()
    }
}
