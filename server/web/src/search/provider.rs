//! The providers of searches: how each is asked, and where the results stand in its answer.

use std::str::FromStr;

use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use url::Url;

use super::SearchHit;
use crate::markdown;

/// A provider of searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchProvider {
    /// Brave Search (<https://api-dashboard.search.brave.com/app/documentation/web-search>).
    Brave,
    /// Tavily (<https://docs.tavily.com/documentation/api-reference/endpoint/search>).
    Tavily,
    /// A server of SearXNG (<https://docs.searxng.org/dev/search_api.html>).
    Searxng,
}

/// The place of the key in a request.
pub(super) enum KeyIn {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// A header of this name.
    Header(&'static str),
}

impl SearchProvider {
    /// Its name in the settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Brave => "brave",
            Self::Tavily => "tavily",
            Self::Searxng => "searxng",
        }
    }

    /// The variable of the environment that may hold its key, where it has keys.
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Brave => Some("BRAVE_API_KEY"),
            Self::Tavily => Some("TAVILY_API_KEY"),
            Self::Searxng => None,
        }
    }

    /// Its address, where all use the same.
    pub fn usual_url(self) -> Option<&'static str> {
        match self {
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Tavily => Some("https://api.tavily.com"),
            Self::Searxng => None,
        }
    }

    pub(super) fn key_in(self) -> KeyIn {
        match self {
            Self::Brave => KeyIn::Header("x-subscription-token"),
            Self::Tavily | Self::Searxng => KeyIn::Bearer,
        }
    }

    /// The request for these words, without the key.
    pub(super) fn request(
        self,
        http: &Client,
        base: &Url,
        query: &str,
        at_most: usize,
    ) -> RequestBuilder {
        let request = match self {
            Self::Brave => http.get(below(base, "res/v1/web/search")).query(&[
                ("q", query),
                ("count", &at_most.to_string()),
                ("text_decorations", "false"),
            ]),
            Self::Tavily => http
                .post(below(base, "search"))
                .json(&json!({ "query": query, "max_results": at_most })),
            Self::Searxng => http
                .get(below(base, "search"))
                .query(&[("q", query), ("format", "json")]),
        };
        request.header("accept", "application/json")
    }

    /// The results in an answer; nothing where it has no list of them.
    pub(super) fn results(self, answer: &Value) -> Option<Vec<SearchHit>> {
        let (list, snippet) = match self {
            // Without a result the answer has no part for the web.
            Self::Brave if answer.is_object() && answer.get("web").is_none() => {
                return Some(Vec::new());
            }
            Self::Brave => (&answer["web"]["results"], "description"),
            Self::Tavily | Self::Searxng => (&answer["results"], "content"),
        };
        let found = list.as_array()?.iter().filter_map(|result| {
            let url = result["url"].as_str()?;
            Some(SearchHit {
                title: words(&result["title"]),
                url: url.to_owned(),
                snippet: words(&result[snippet]),
            })
        });
        Some(found.collect())
    }
}

/// The text of a part of a result, which may be HTML.
fn words(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    match text.contains(['<', '&']) {
        true => markdown::words_of_html(text),
        false => text.to_owned(),
    }
}

/// The address below the base, which may have a path of its own.
fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_query(None);
    url.set_fragment(None);
    let path = format!("{}/{path}", base.path().trim_end_matches('/'));
    url.set_path(&path);
    url
}

impl FromStr for SearchProvider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        let all = [Self::Brave, Self::Tavily, Self::Searxng];
        all.into_iter()
            .find(|provider| provider.name() == name)
            .ok_or(UnknownProvider)
    }
}

/// The name is that of no provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the provider of searches is brave, tavily or searxng")]
pub struct UnknownProvider;
