//! The identity of a caller's operation.

use std::time::Duration;

use server_store::{AskedBy, MAX_REQUEST_KEY_BYTES, OpenCallerOperation, OperationRow};
use shared_sandbox::{Consent, Operation, OperationLimits, Request};
use shared_types::{
    CredentialId, Effect, Epoch, OperationId, OperationKey, OperationScope, Owner, RunnerId,
    SandboxId, TenantId, TraceContext, UserId,
};

use crate::AppError;

/// It starts within this time or not at all.
const START_WITHIN: Duration = Duration::from_secs(60);

/// The identity of a caller's operation, and its place.
pub(super) struct CallerRequest {
    pub(super) tenant: TenantId,
    pub(super) user: UserId,
    /// Of the request that asks.
    pub(super) credential: Option<CredentialId>,
    pub(super) key: String,
    pub(super) runner: RunnerId,
    pub(super) sandbox: SandboxId,
    /// The span of the request that asks.
    pub(super) trace: Option<TraceContext>,
}

impl CallerRequest {
    pub(super) fn of(open: &OpenCallerOperation) -> Result<Self, AppError> {
        let OperationRow {
            asked_by: AskedBy::Caller { user, key },
            ..
        } = &open.row
        else {
            return Err(AppError::NotFound("operation"));
        };
        Ok(Self {
            tenant: open.tenant,
            user: *user,
            // Known to the row that is there.
            credential: None,
            key: key.clone(),
            runner: open.row.runner,
            sandbox: open.row.sandbox,
            trace: open.row.trace,
        })
    }

    pub(super) fn asked_by(&self) -> AskedBy {
        AskedBy::Caller {
            user: self.user,
            key: self.key.clone(),
        }
    }

    pub(super) fn operation(&self, request: Request, epoch: Epoch, run_for: Duration) -> Operation {
        let (owner, scope) = (
            Owner::Sandbox(self.sandbox),
            OperationScope::of(self.tenant),
        );
        // Two users may choose the same key.
        let key = OperationKey::Request(format!("{}/{}", self.user, self.key));
        Operation {
            id: OperationId::derive(&scope, &owner, &key),
            owner,
            key,
            epoch,
            effect: match request.only_reads() {
                true => Effect::Pure,
                false => Effect::Effectful,
            },
            limits: OperationLimits {
                start_within: START_WITHIN,
                run_for,
            },
            request,
            consent: Consent::Caller,
            trace: self.trace,
        }
    }
}

pub(super) fn request(open: &OpenCallerOperation) -> Result<Request, AppError> {
    parsed(&open.request)
}

/// A request as it is stored.
pub(super) fn parsed(request: &str) -> Result<Request, AppError> {
    serde_json::from_str(request).map_err(AppError::unavailable)
}

pub(super) fn is_key(key: &str) -> Result<(), AppError> {
    let fits = (1..=MAX_REQUEST_KEY_BYTES).contains(&key.len());
    match fits && key.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(()),
        false => Err(AppError::Invalid(format!(
            "an idempotency key has from 1 to {MAX_REQUEST_KEY_BYTES} visible ASCII characters"
        ))),
    }
}
