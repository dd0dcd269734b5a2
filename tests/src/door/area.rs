//! Where the output of a door's operations is kept: the server's own area of files.

use std::path::Path;

use server_store::{OutputKey, Outputs, TenantOutputs};
use shared_sandbox::OutputStream;
use shared_types::{OperationId, TenantId};

/// The only tenant here.
const TENANT: TenantId = TenantId::from_u128(1);

/// The server's own area over a folder.
pub(super) fn area(folder: &Path) -> TenantOutputs {
    Outputs::start(folder).expect("a folder").of(TENANT)
}

/// A stream in that area.
pub fn output_key(operation: OperationId, stream: OutputStream) -> OutputKey {
    OutputKey {
        tenant: TENANT,
        operation,
        stream,
    }
}
