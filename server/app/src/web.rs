//! The web of turns: that of `server-web`, as the engine asks for it.

use std::sync::Arc;

use async_trait::async_trait;
use server_agent::{WebPage, WebResult, WebTools};
use server_web::{Page, SearchHit, Web};

/// The web that the operator offers.
pub(crate) struct TurnWeb(pub(crate) Arc<Web>);

impl TurnWeb {
    /// The tools for its parts.
    pub(crate) fn tools(&self) -> WebTools {
        WebTools {
            pages: self.0.has_pages(),
            searches: self.0.has_searches(),
        }
    }
}

#[async_trait]
impl server_agent::Web for TurnWeb {
    async fn fetch(&self, url: &str) -> Result<WebPage, String> {
        let fetched = self.0.fetch(url).await;
        let Page { url, text } = fetched.map_err(|error| error.to_string())?;
        Ok(WebPage { url, text })
    }

    async fn search(&self, query: &str, at_most: usize) -> Result<Vec<WebResult>, String> {
        let found = self.0.search(query, at_most).await;
        let found = found.map_err(|error| error.to_string())?;
        let result = |found| {
            let SearchHit {
                title,
                url,
                snippet,
            } = found;
            WebResult {
                title,
                url,
                snippet,
            }
        };
        Ok(found.into_iter().map(result).collect())
    }
}
