//! Who acts: every use case takes it, and it comes from the credential alone
//! (docs/internals/contracts.md#e-tenancy).

use shared_types::{CredentialId, TenantId, UserId};

/// The tenant and the subject of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpContext {
    /// The tenant of the credential.
    pub tenant: TenantId,
    /// The user of the credential.
    pub user: UserId,
    /// The credential itself.
    pub credential: CredentialId,
}
