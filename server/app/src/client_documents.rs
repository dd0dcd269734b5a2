//! Documents by which programs say who they are (OAuth Client ID Metadata Documents), from the web that the operator
//! offers.

use std::sync::Arc;

use server_web::{Page, Web};

/// Longest document, in bytes.
const MAX_DOCUMENT_BYTES: usize = 16 * 1024;

/// Reads documents of programs.
#[derive(Clone)]
pub struct ClientDocuments(Arc<Web>);

impl ClientDocuments {
    pub(crate) fn of(web: Arc<Web>) -> Self {
        Self(web)
    }

    /// True if they are read: the operator offers pages of the web.
    pub fn are_read(&self) -> bool {
        self.0.has_pages()
    }

    /// The text of the document at this address. It lies there itself: no other address leads to it.
    ///
    /// # Errors
    /// If it cannot be read; the text tells a person why.
    pub async fn read(&self, address: &str) -> Result<String, String> {
        let Page { url, text } =
            self.0.fetch(address).await.map_err(|error| {
                format!("the document about the program cannot be read: {error}")
            })?;
        match (url == address, text.len() <= MAX_DOCUMENT_BYTES) {
            (true, true) => Ok(text),
            (false, _) => Err("the document about the program lies at another address".to_owned()),
            (true, false) => Err("the document about the program is too long".to_owned()),
        }
    }
}
