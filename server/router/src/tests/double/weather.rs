//! What befalls whoever asks a port.

use async_trait::async_trait;

use server_records::PortError;

/// How long the store takes, and whether it answers.
#[async_trait]
pub(in crate::tests) trait Weather: Send + Sync {
    /// Before the store has done what it is asked.
    ///
    /// # Errors
    /// It does not do it.
    async fn before(&self) -> Result<(), PortError>;

    /// Behind that.
    ///
    /// # Errors
    /// It was done, and the answer is lost.
    async fn after(&self) -> Result<(), PortError>;

    /// Whether what is appended now is lost, of which only a later piece of the stream tells.
    fn loses(&self) -> bool {
        false
    }
}

/// It answers at once, and always.
pub(super) struct Calm;

#[async_trait]
impl Weather for Calm {
    async fn before(&self) -> Result<(), PortError> {
        Ok(())
    }

    async fn after(&self) -> Result<(), PortError> {
        Ok(())
    }
}
