//! What the statements of a transaction have written, as far as people hear of it.

use std::collections::BTreeSet;

use server_records::{Change, Pace, Whose};
use shared_types::{CredentialId, OperationId, SessionId, TenantId, Topic, UserId};

use super::tables::{List, Readers, lists, written};

/// The most sessions, operations and people that one transaction tells of by name; everyone hears of more.
const NAMED_AT_MOST: usize = 32;

/// What one statement writes, taken before it is run.
#[derive(Debug)]
pub(crate) struct Statement {
    lists: Vec<List>,
    ids: Vec<Id>,
    subject: Whose,
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
}

impl Statement {
    /// `None` for one that changes no list. A text of a person's that looks like an id names another session at worst,
    /// whose person reads a list in vain.
    pub(crate) fn of<'v>(sql: &str, texts: impl Iterator<Item = &'v str> + Clone) -> Option<Self> {
        let lists: Vec<_> = written(sql)
            .into_iter()
            .filter_map(lists)
            .flatten()
            .copied()
            .collect();
        if lists.is_empty() {
            return None;
        }
        let subject = texts.clone().nth(1).map_or(Whose::Everyone, subject);
        let ids = texts.filter_map(Id::read).collect();
        Some(Self {
            lists,
            ids,
            subject,
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
        } = statement;
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

    /// The hints of a transaction for this tenant; without one, for those that its statements name, or for all.
    pub(crate) fn changes(self, tenant: Option<TenantId>) -> Vec<Change> {
        let Self {
            named,
            of_sessions,
            sessions,
            tenants,
        } = self;
        let in_tenant = tenant.is_some();
        let tenants: Vec<_> = match tenant {
            Some(tenant) => vec![Some(tenant)],
            None if tenants.is_empty() => vec![None],
            None => tenants.into_iter().map(Some).collect(),
        };
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
