//! The port to the web.

use async_trait::async_trait;

/// The web, as the tools for it ask. It decides what may be reached.
#[async_trait]
pub trait Web: Send + Sync {
    /// The page at this address. Dropping the future ends the request.
    ///
    /// # Errors
    /// There is no text; the words tell the model why.
    async fn fetch(&self, url: &str) -> Result<WebPage, String>;

    /// The results for these words, the best first, at most so many. Dropping the future ends the request.
    ///
    /// # Errors
    /// There is no answer; the words tell the model why.
    async fn search(&self, query: &str, at_most: usize) -> Result<Vec<WebResult>, String>;
}

/// A page of the web.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebPage {
    /// The address at which it was found, on one line.
    pub url: String,
    /// Its whole text, however long.
    pub text: String,
}

/// A result of a search. Each part is on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebResult {
    /// The title of the page.
    pub title: String,
    /// Its address.
    pub url: String,
    /// Some words of it; may be empty.
    pub snippet: String,
}
