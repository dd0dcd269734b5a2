//! Searches of the web, at the provider that the operator chose.

mod provider;

use std::{fmt, time::Duration};

use reqwest::{
    Client, Response, StatusCode,
    header::{AUTHORIZATION, HeaderName, HeaderValue},
};
use serde_json::Value;
use shared_types::{
    address::is_loopback_host,
    clean::{clean_line, without_mark},
};
use tokio::time::timeout;
use url::Url;

use self::provider::KeyIn;
pub use self::provider::{SearchProvider, UnknownProvider};
use crate::{WebError, WebOptionsError, body, http};

/// Most results of one search.
pub const RESULTS_AT_MOST: usize = 10;

/// Largest answer of a provider, in bytes.
const ANSWER_BYTES: usize = 1024 * 1024;

/// Longest parts of a result, in characters.
const TITLE_LETTERS: usize = 200;
const URL_LETTERS: usize = 1000;
const SNIPPET_LETTERS: usize = 500;

/// A key of a provider. Its `Debug` form hides it.
#[derive(Clone)]
pub struct SearchKey(String);

impl SearchKey {
    /// The key in `text`, without white space around it; nothing where nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = without_mark(text).trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for SearchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SearchKey(…)")
    }
}

/// The provider of searches.
#[derive(Debug, Clone)]
pub struct SearchOptions {
    /// The provider.
    pub provider: SearchProvider,
    /// Its address, where that is not the usual one. SearXNG has no usual one.
    pub url: Option<String>,
    /// Its key; SearXNG needs none.
    pub key: Option<SearchKey>,
    /// The time for a search.
    pub within: Duration,
}

/// A result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The title of the page.
    pub title: String,
    /// Its address.
    pub url: String,
    /// Some words of it; may be empty.
    pub snippet: String,
}

/// Searches at one provider.
pub(crate) struct Searcher {
    http: Client,
    provider: SearchProvider,
    base: Url,
    /// The header with the key.
    key: Option<(HeaderName, HeaderValue)>,
    within: Duration,
}

impl Searcher {
    /// # Errors
    /// Fails if the address or the key cannot be used.
    pub(crate) fn new(options: SearchOptions) -> Result<Self, WebOptionsError> {
        let written = options.url.as_deref().map(str::trim);
        let written = written.or(options.provider.usual_url());
        let base = Url::parse(written.unwrap_or_default()).map_err(|_| WebOptionsError::Url)?;
        if !base.username().is_empty() || base.password().is_some() {
            return Err(WebOptionsError::UrlWithSecret);
        }
        if !matches!(base.scheme(), "http" | "https") {
            return Err(WebOptionsError::Url);
        }
        // The operator chose this server, so it may stand anywhere, and behind the operator's proxy.
        let is_here = base.host_str().is_some_and(is_loopback_host);
        if options.key.is_some() && base.scheme() == "http" && !is_here {
            tracing::warn!("the key of [web.search] travels unencrypted: use an https address");
        }
        let client = match is_here {
            true => http::client().no_proxy(),
            false => http::client(),
        };
        let key = options.key.map(|key| header(options.provider, &key));
        Ok(Self {
            http: client.build().map_err(WebOptionsError::Client)?,
            provider: options.provider,
            base,
            key: key.transpose()?,
            within: options.within,
        })
    }

    /// The results for these words, at most so many.
    pub(crate) async fn search(
        &self,
        query: &str,
        at_most: usize,
    ) -> Result<Vec<SearchHit>, WebError> {
        let at_most = at_most.clamp(1, RESULTS_AT_MOST);
        let searched = timeout(self.within, self.ask(query, at_most)).await;
        let answer = searched.unwrap_or(Err(WebError::TimedOut(self.within)))?;
        let found = self.provider.results(&answer);
        let found = found.ok_or_else(|| failed("gave an answer that cannot be read"))?;
        Ok(found.into_iter().take(at_most).map(bounded).collect())
    }

    async fn ask(&self, query: &str, at_most: usize) -> Result<Value, WebError> {
        let request = self
            .provider
            .request(&self.http, &self.base, query, at_most);
        let request = match &self.key {
            Some((name, value)) => request.header(name, value),
            None => request,
        };
        let sent = request.send().await;
        let response = sent.map_err(|error| {
            let cause = http::root_cause(&error);
            failed(&format!("cannot be reached ({cause})"))
        })?;
        if !response.status().is_success() {
            return Err(self.refusal(&response));
        }
        let read = body::read(response, ANSWER_BYTES).await;
        let bytes = read.map_err(|error| failed(&format!("gave no whole answer: {error}")))?;
        let answer = serde_json::from_slice(&bytes);
        answer.map_err(|_| failed("gave an answer that is no JSON"))
    }

    /// The words for a refusal. The provider's own words are left out, because they may name the key.
    fn refusal(&self, response: &Response) -> WebError {
        let status = response.status();
        let advice = match (status, self.provider) {
            (StatusCode::FORBIDDEN, SearchProvider::Searxng) => {
                ": the operator has to allow json under search.formats in its settings.yml"
            }
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => {
                ": the operator has to check the key of [web.search]"
            }
            (StatusCode::TOO_MANY_REQUESTS, _) => ": search again later",
            _ => "",
        };
        failed(&format!("answered with the status {status}{advice}"))
    }
}

fn failed(words: &str) -> WebError {
    WebError::Search(words.to_owned())
}

/// The header that carries the key.
fn header(
    provider: SearchProvider,
    key: &SearchKey,
) -> Result<(HeaderName, HeaderValue), WebOptionsError> {
    let (name, text) = match provider.key_in() {
        KeyIn::Bearer => (AUTHORIZATION, format!("Bearer {}", key.0)),
        KeyIn::Header(name) => (HeaderName::from_static(name), key.0.clone()),
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| WebOptionsError::Key)?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// A result whose parts are short, and each on one line.
fn bounded(found: SearchHit) -> SearchHit {
    let line = |text: &str, letters| {
        let words: Vec<_> = text.split_whitespace().collect();
        clean_line(&words.join(" "), letters)
    };
    SearchHit {
        title: line(&found.title, TITLE_LETTERS),
        url: line(&found.url, URL_LETTERS),
        snippet: line(&found.snippet, SNIPPET_LETTERS),
    }
}

#[cfg(test)]
mod tests;
