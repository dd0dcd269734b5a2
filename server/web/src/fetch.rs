//! Pages of the web.

use std::{collections::BTreeMap, error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use reqwest::{
    Client, Response, StatusCode,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION},
};
use shared_types::AddressRange;
use tokio::{sync::Semaphore, time::timeout};
use url::Url;

use crate::{
    Page, WebError, WebOptionsError, body, http,
    http::broken,
    reach::{Checked, Lookup, NotAllowed, Reach, SystemLookup, host},
    text,
};

/// Most pages that lead on to another one, for one request.
const REDIRECTS_AT_MOST: usize = 5;

/// Most pages that one process fetches at once; others wait. Each takes up to four times
/// [`FetchOptions::body_at_most`] of memory.
const AT_ONCE: usize = 32;

/// The contents that are wanted.
const ACCEPTED: &str =
    "text/html,application/xhtml+xml,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5";

/// The networks and the bounds of pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchOptions {
    /// Networks that pages may come from besides the public internet.
    pub allow: Vec<AddressRange>,
    /// Largest content of a page, packed and unpacked, in bytes.
    pub body_at_most: usize,
    /// The time for a page, with all pages that lead on to it.
    pub within: Duration,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            body_at_most: 5 * 1024 * 1024,
            within: Duration::from_secs(30),
        }
    }
}

/// Most bytes of the answer to what is posted.
const POSTED_AT_MOST: usize = 256 * 1024;

/// JSON that is to be sent.
pub(crate) struct Post<'a> {
    pub(crate) url: &'a str,
    pub(crate) headers: &'a BTreeMap<String, String>,
    pub(crate) json: Bytes,
}

/// Fetches pages.
pub(crate) struct Fetcher {
    http: Client,
    reach: Reach,
    options: FetchOptions,
    room: Semaphore,
}

impl Fetcher {
    /// # Errors
    /// Fails if the HTTP client cannot be set up.
    pub(crate) fn new(options: FetchOptions) -> Result<Self, WebOptionsError> {
        Self::with(options, Arc::new(SystemLookup))
    }

    fn with(options: FetchOptions, lookup: Arc<dyn Lookup>) -> Result<Self, WebOptionsError> {
        let reach = Reach::new(options.allow.clone());
        let checked = Checked {
            reach: reach.clone(),
            lookup,
        };
        // A proxy would resolve the name itself, in its own network.
        let http = http::client().no_proxy().dns_resolver(Arc::new(checked));
        Ok(Self {
            http: http.build().map_err(WebOptionsError::Client)?,
            reach,
            options,
            room: Semaphore::new(AT_ONCE),
        })
    }

    /// The page at this address, or the one to which it leads on.
    pub(crate) async fn fetch(&self, written: &str) -> Result<Page, WebError> {
        let within = self.options.within;
        let fetched = async {
            let url = self.reach.parse(written)?;
            let _room = self.room.acquire().await;
            let (url, response) = self.follow(url).await?;
            self.page(&url, response).await
        };
        timeout(within, fetched)
            .await
            .unwrap_or(Err(WebError::TimedOut(within)))
    }

    /// The bytes at this address, or at the one to which it leads on: at most so many.
    pub(crate) async fn download(
        &self,
        written: &str,
        at_most: usize,
    ) -> Result<Vec<u8>, WebError> {
        let within = self.options.within;
        let fetched = async {
            let url = self.reach.parse(written)?;
            let _room = self.room.acquire().await;
            let (url, response) = self.follow(url).await?;
            body::read(succeeded(&url, response)?, at_most).await
        };
        timeout(within, fetched)
            .await
            .unwrap_or(Err(WebError::TimedOut(within)))
    }

    /// Sends JSON to this address, and returns the text of the answer.
    pub(crate) async fn post(&self, post: Post<'_>, within: Duration) -> Result<String, WebError> {
        let posted = async {
            let url = self.reach.parse(post.url)?;
            let _room = self.room.acquire().await;
            let headers = headers(post.headers).map_err(|cause| WebError::Unreachable {
                host: host(&url),
                cause: cause.to_owned(),
            })?;
            let request = self.http.post(url.clone()).headers(headers).body(post.json);
            let response = request
                .send()
                .await
                .map_err(|error| unreached(&url, &error))?;
            let status = response.status();
            if !status.is_success() {
                return Err(broken(&url, &format!("it answered {status}")));
            }
            let text = body::read(response, POSTED_AT_MOST).await?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        timeout(within, posted)
            .await
            .unwrap_or(Err(WebError::TimedOut(within)))
    }

    /// The answer at this address, or at the one to which it leads on.
    async fn follow(&self, mut url: Url) -> Result<(Url, Response), WebError> {
        for _ in 0..=REDIRECTS_AT_MOST {
            let response = self.ask(&url).await?;
            match self.next(&url, &response)? {
                Some(next) => url = next,
                None => return Ok((url, response)),
            }
        }
        Err(WebError::TooManyRedirects(REDIRECTS_AT_MOST))
    }

    async fn ask(&self, url: &Url) -> Result<Response, WebError> {
        let request = self.http.get(url.clone());
        let request = request
            .header(ACCEPT, ACCEPTED)
            .header(ACCEPT_ENCODING, "gzip");
        tracing::debug!(web.host = host(url), "fetching a page");
        request.send().await.map_err(|error| unreached(url, &error))
    }

    /// The page to which an answer leads on, if it does.
    fn next(&self, url: &Url, response: &Response) -> Result<Option<Url>, WebError> {
        use StatusCode as Is;
        let leads_on = matches!(
            response.status(),
            Is::MOVED_PERMANENTLY
                | Is::FOUND
                | Is::SEE_OTHER
                | Is::TEMPORARY_REDIRECT
                | Is::PERMANENT_REDIRECT
        );
        let location = response.headers().get(LOCATION).filter(|_| leads_on);
        let Some(location) = location else {
            return Ok(None);
        };
        let location = std::str::from_utf8(location.as_bytes());
        let next = location.ok().and_then(|location| url.join(location).ok());
        let next = next.ok_or_else(|| broken(url, "it leads on to no URL"))?;
        if url.scheme() == "https" && next.scheme() == "http" {
            return Err(WebError::Downgrade(host(url)));
        }
        self.reach.check(next).map(Some)
    }

    async fn page(&self, url: &Url, response: Response) -> Result<Page, WebError> {
        let response = succeeded(url, response)?;
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
        let kind = text::ContentType::of(kind.as_deref());
        if !kind.may_be_text() {
            return Err(kind.no_text(response.content_length()));
        }
        let bytes = body::read(response, self.options.body_at_most).await?;
        let base = url.clone();
        // A page of 5 MiB takes long enough to keep other tasks waiting.
        let text = tokio::task::spawn_blocking(move || kind.text(&bytes, &base));
        let text = text
            .await
            .map_err(|_| broken(url, "its text cannot be read"))??;
        Ok(Page {
            url: url.to_string(),
            text,
        })
    }
}

/// The headers of JSON that is posted, and these, whose values no log shows.
fn headers(written: &BTreeMap<String, String>) -> Result<HeaderMap, &'static str> {
    let json = HeaderValue::from_static("application/json");
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, json)]);
    for (name, value) in written {
        let name = HeaderName::try_from(name).map_err(|_| "a header has no valid name")?;
        let value = HeaderValue::try_from(value);
        let mut value = value.map_err(|_| "a header has a value that none may have")?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// The answer, unless its status is that of a failure.
fn succeeded(url: &Url, response: Response) -> Result<Response, WebError> {
    let status = response.status();
    match status.is_success() {
        true => Ok(response),
        false => Err(WebError::Status {
            host: host(url),
            status: status.to_string(),
        }),
    }
}

fn unreached(url: &Url, error: &reqwest::Error) -> WebError {
    match is_refused(error) {
        true => WebError::Private(host(url)),
        false => WebError::Unreachable {
            host: host(url),
            cause: http::root_cause(error),
        },
    }
}

/// True if the address of the host is not allowed.
pub(crate) fn is_refused(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<NotAllowed>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests;
