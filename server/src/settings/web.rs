//! `[web]`: the pages and the searches that the model may ask for.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use anyhow::{Context as _, bail, ensure};
use schemars::JsonSchema;
use serde::Deserialize;
use server_web::{FetchOptions, SearchKey, SearchOptions, SearchProvider, WebOptions};
use shared_types::AddressRange;

/// The time for a search.
const SEARCH_WITHIN: Duration = Duration::from_secs(30);

/// Most networks that can be allowed.
const ALLOWED_AT_MOST: usize = 64;

/// The section of the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WebSection {
    /// True if the model may fetch pages of the public internet, from the server [default: true].
    fetch: Option<bool>,
    /// Networks that pages may come from besides the public internet. Everybody whose sessions run here can have the
    /// server read what answers there [default: none].
    #[schemars(example = ["10.0.0.0/8"])]
    allow: Vec<String>,
    /// The provider of searches. Without one the model cannot search.
    search: SearchSection,
}

/// The provider of searches, as it is written.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct SearchSection {
    /// The provider: `brave`, `tavily` or `searxng` [default: none].
    #[schemars(example = &"searxng")]
    provider: Option<String>,
    /// The address of its server; SearXNG needs one [default: that of the provider].
    #[schemars(example = &"https://search.example.org")]
    url: Option<String>,
    /// A file with its key. The variable BRAVE_API_KEY or TAVILY_API_KEY goes before it [default: no key].
    #[schemars(example = &"/etc/gantry/search.key")]
    key_file: Option<PathBuf>,
}

/// The keys of providers in the environment, by their variables; each is overwritten there.
pub(super) fn keys_of_environment() -> BTreeMap<&'static str, String> {
    let providers = [
        SearchProvider::Brave,
        SearchProvider::Tavily,
        SearchProvider::Searxng,
    ];
    let variables = providers
        .into_iter()
        .filter_map(SearchProvider::key_variable);
    let keys = variables.filter_map(|name| Some((name, shared_program::take_secret(name)?)));
    keys.collect()
}

impl WebSection {
    /// The options, with the keys of the environment.
    ///
    /// # Errors
    /// Fails if a network is none, or the provider cannot be used.
    pub(super) fn options(self, keys: &BTreeMap<&str, String>) -> anyhow::Result<WebOptions> {
        ensure!(
            self.allow.len() <= ALLOWED_AT_MOST,
            "allow under [web] in gantry.toml has more than {ALLOWED_AT_MOST} networks"
        );
        let network = |text: &String| {
            let range = text.trim().parse::<AddressRange>();
            range.with_context(|| format!("allow under [web] in gantry.toml has {text:?}"))
        };
        let allow = self.allow.iter().map(network);
        let allow = allow.collect::<anyhow::Result<Vec<_>>>()?;
        let fetch = self.fetch.unwrap_or(true).then(|| FetchOptions {
            allow,
            ..FetchOptions::default()
        });
        Ok(WebOptions {
            fetch,
            search: self.search.options(keys)?,
        })
    }
}

impl SearchSection {
    fn options(self, keys: &BTreeMap<&str, String>) -> anyhow::Result<Option<SearchOptions>> {
        let Some(name) = self.provider else {
            ensure!(
                self.url.is_none() && self.key_file.is_none(),
                "[web.search] in gantry.toml names no provider: set provider to brave, tavily or searxng"
            );
            return Ok(None);
        };
        let provider: SearchProvider = name
            .parse()
            .with_context(|| format!("provider under [web.search] in gantry.toml is {name:?}"))?;
        ensure!(
            provider.usual_url().is_some() || self.url.is_some(),
            "[web.search] in gantry.toml needs the address of your SearXNG: set url, such as https://search.example.org"
        );
        let given = provider.key_variable().and_then(|name| keys.get(name));
        let key = match given.and_then(|given| SearchKey::new(given)) {
            Some(key) => Some(key),
            None => self.key_file.map(key_of_file).transpose()?,
        };
        if let (Some(variable), None) = (provider.key_variable(), &key) {
            bail!("[web.search] in gantry.toml has no key: set key_file, or {variable}");
        }
        Ok(Some(SearchOptions {
            provider,
            url: self.url,
            key,
            within: SEARCH_WITHIN,
        }))
    }
}

fn key_of_file(path: PathBuf) -> anyhow::Result<SearchKey> {
    let path = path.display();
    let text = std::fs::read_to_string(path.to_string())
        .with_context(|| format!("the key file {path} of [web.search] cannot be read"))?;
    SearchKey::new(&text)
        .with_context(|| format!("the key file {path} of [web.search] holds no key"))
}

#[cfg(test)]
mod tests {
    use server_web::Web;

    use super::*;

    fn options(toml: &str) -> anyhow::Result<WebOptions> {
        let section: WebSection = toml::from_str(toml).expect("a section");
        section.options(&BTreeMap::from([("BRAVE_API_KEY", "of-brave".to_owned())]))
    }

    #[test]
    fn pages_are_offered_unless_they_are_turned_off_and_searches_where_there_is_a_provider() {
        let of = |toml: &str| {
            let web = Web::new(options(toml).expect("they are fine")).expect("it can be set up");
            (web.has_pages(), web.has_searches())
        };
        assert_eq!(of(""), (true, false));
        assert_eq!(of("fetch = false"), (false, false));
        assert_eq!(of("[search]\nprovider = \"brave\""), (true, true));
        let searxng =
            "fetch = false\n[search]\nprovider = \"searxng\"\nurl = \"http://127.0.0.1:1\"";
        assert_eq!(of(searxng), (false, true));
        let allowed = options("allow = [\"10.0.0.0/8\", \"fd00::1\"]").expect("they are fine");
        let allowed = allowed.fetch.expect("it is on").allow;
        let allowed: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        assert_eq!(allowed, ["10.0.0.0/8", "fd00::1/128"]);
    }

    #[test]
    fn a_key_comes_from_the_environment_or_from_a_file_and_does_not_show() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("search.key");
        std::fs::write(&file, "of-file\n").expect("it is written");
        let toml = format!("[search]\nprovider = \"tavily\"\nkey_file = {file:?}");
        let search = options(&toml)
            .expect("it is fine")
            .search
            .expect("a provider");
        assert!(search.key.is_some() && !format!("{search:?}").contains("of-file"));
        std::fs::write(&file, "\n").expect("it is written");
        let error = format!("{:#}", options(&toml).expect_err("it is refused"));
        assert!(error.contains("holds no key"), "{error}");
    }

    #[test]
    fn a_wrong_setting_is_refused_with_what_to_write() {
        for (toml, words) in [
            (
                "allow = [\"10/8\"]",
                "a range of addresses is written like 10.0.0.0/8",
            ),
            (
                "allow = [\"localhost\"]",
                "allow under [web] in gantry.toml has \"localhost\"",
            ),
            (
                "[search]\nprovider = \"google\"",
                "brave, tavily or searxng",
            ),
            (
                "[search]\nurl = \"https://search.example.org\"",
                "set provider to",
            ),
            (
                "[search]\nprovider = \"searxng\"",
                "set url, such as https://search.example.org",
            ),
            (
                "[search]\nprovider = \"tavily\"",
                "set key_file, or TAVILY_API_KEY",
            ),
            (
                "[search]\nprovider = \"tavily\"\nkey_file = \"/no/such.key\"",
                "the key file /no/such.key of [web.search] cannot be read",
            ),
        ] {
            let error = format!("{:#}", options(toml).expect_err("it is refused"));
            assert!(error.contains(words), "{error}");
        }
        let many = vec!["10.0.0.0/8"; 65];
        let error = options(&format!("allow = {many:?}")).expect_err("it is refused");
        assert!(error.to_string().contains("more than 64"), "{error}");
    }
}
