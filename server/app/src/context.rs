//! The actor of a request. Every use case takes it, and it comes from the credential alone
//! (docs/internals/contracts.md#e-tenancy).

use std::net::IpAddr;

use server_store::{AuditOrigin, By, Role, Scopes};
use shared_types::{CredentialId, TenantId, TraceContext, UserId};

use crate::rights::RightSubject;

/// The tenant and the subject of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpContext {
    /// The tenant of the credential.
    pub tenant: TenantId,
    /// The user of the credential.
    pub user: UserId,
    /// The credential itself.
    pub credential: CredentialId,
    /// The user's role, when the request came.
    pub role: Role,
    /// The scopes of the credential.
    pub scopes: Scopes,
    /// From where the request came.
    pub from: Option<IpAddr>,
    /// The span of the request, where it is traced.
    pub trace: Option<TraceContext>,
}

impl OpContext {
    /// The actor, for the audit log.
    pub(crate) fn by(&self) -> By {
        By {
            user: self.user,
            origin: AuditOrigin {
                credential: Some(self.credential),
                address: self.from,
            },
        }
    }

    /// The subject whose rights are checked.
    pub fn subject(&self) -> RightSubject {
        RightSubject {
            user: self.user,
            role: self.role,
            scopes: self.scopes,
        }
    }
}
