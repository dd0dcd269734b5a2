//! The web, for the tools of the model: pages, and searches at a provider that the operator chooses.
//!
//! The server fetches pages, and not a runner. So the networks that a page may come from are the heart of this crate
//! (`reach`). This crate knows no tenants, sessions or tools, and logs no address beyond its host.

mod body;
mod checked;
mod error;
mod fetch;
mod http;
mod markdown;
mod reach;
mod search;
#[cfg(test)]
mod testing;
mod text;

pub use self::{
    checked::CheckedClient,
    error::{WebError, WebOptionsError},
    fetch::FetchOptions,
    search::{
        RESULTS_AT_MOST, SearchHit, SearchKey, SearchOptions, SearchProvider, UnknownProvider,
    },
};
use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;

use self::{
    fetch::{Fetcher, Post},
    search::Searcher,
};

/// The parts of the web that the operator offers.
#[derive(Debug, Clone, Default)]
pub struct WebOptions {
    /// Pages, where the operator offers them.
    pub fetch: Option<FetchOptions>,
    /// Searches, where the operator has a provider.
    pub search: Option<SearchOptions>,
}

/// A page of the web.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The address at which it was found, after the pages that led on to it.
    pub url: String,
    /// Its whole text; HTML as Markdown.
    pub text: String,
}

/// The web, as far as the operator offers it.
pub struct Web {
    fetcher: Option<Fetcher>,
    searcher: Option<Searcher>,
    client: CheckedClient,
}

impl Web {
    /// The web with these parts; nothing is sent yet.
    ///
    /// # Errors
    /// Fails if the options name no usable provider, or the HTTP client cannot be set up.
    pub fn new(options: WebOptions) -> Result<Self, WebOptionsError> {
        let allow = options.fetch.as_ref().map(|fetch| fetch.allow.clone());
        Ok(Self {
            client: CheckedClient::new(allow.unwrap_or_default())?,
            fetcher: options.fetch.map(Fetcher::new).transpose()?,
            searcher: options.search.map(Searcher::new).transpose()?,
        })
    }

    /// A client for servers that people name, in the networks that pages may come from.
    pub fn client(&self) -> &CheckedClient {
        &self.client
    }

    /// True if pages are offered.
    pub fn has_pages(&self) -> bool {
        self.fetcher.is_some()
    }

    /// True if searches are offered.
    pub fn has_searches(&self) -> bool {
        self.searcher.is_some()
    }

    /// The page at this address, or the one to which it leads on. Dropping the future ends the request.
    ///
    /// # Errors
    /// Fails if the address may not be asked for, or has no text within the bounds of [`FetchOptions`].
    pub async fn fetch(&self, url: &str) -> Result<Page, WebError> {
        match &self.fetcher {
            Some(fetcher) => fetcher.fetch(url).await,
            None => Err(WebError::NotOffered),
        }
    }

    /// The bytes at this address, or at the one to which it leads on: at most so many. Dropping the future ends the
    /// request.
    ///
    /// # Errors
    /// Fails if the address may not be asked for, does not answer in time, or has more.
    pub async fn download(&self, url: &str, at_most: usize) -> Result<Vec<u8>, WebError> {
        match &self.fetcher {
            Some(fetcher) => fetcher.download(url, at_most).await,
            None => Err(WebError::NotOffered),
        }
    }

    /// Sends JSON to this address, and returns the text of the answer, at most 256 KiB. No redirect is followed. Dropping
    /// the future ends the request.
    ///
    /// # Errors
    /// Fails if the address may not be asked for, does not answer in time, or answers with a status that is no success.
    pub async fn post(
        &self,
        url: &str,
        headers: &BTreeMap<String, String>,
        json: Bytes,
        within: Duration,
    ) -> Result<String, WebError> {
        match &self.fetcher {
            Some(fetcher) => fetcher.post(Post { url, headers, json }, within).await,
            None => Err(WebError::NotOffered),
        }
    }

    /// The results for these words, at most so many and at most [`RESULTS_AT_MOST`]. Dropping the future ends the
    /// request.
    ///
    /// # Errors
    /// Fails if the provider does not answer with results.
    pub async fn search(&self, query: &str, at_most: usize) -> Result<Vec<SearchHit>, WebError> {
        match &self.searcher {
            Some(searcher) => searcher.search(query, at_most).await,
            None => Err(WebError::NotOffered),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_part_that_the_operator_does_not_offer_is_refused() {
        let none = Web::new(WebOptions::default()).expect("it can be set up");
        assert!(!none.has_pages() && !none.has_searches());
        let (page, found) = (
            none.fetch("https://example.org/").await,
            none.search("x", 5).await,
        );
        assert_eq!(page, Err(WebError::NotOffered));
        assert_eq!(found, Err(WebError::NotOffered));
    }
}
