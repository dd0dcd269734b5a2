//! The server's base address: its checks, and the addresses below it.

use shared_types::address::is_loopback_host;
use url::Url;

use crate::ClientError;

/// A checked base address.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    url: Url,
}

impl Base {
    /// # Errors
    /// [`ClientError::Address`] for anything but `http` or `https` with a host and without
    /// credentials, query and fragment; and for `http` to another host, unless allowed.
    pub(crate) fn new(url: &Url, plain_text_allowed: bool) -> Result<Self, ClientError> {
        let wrong = |reason: &str| {
            Err(ClientError::Address {
                url: without_credentials(url),
                reason: reason.to_owned(),
            })
        };
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return wrong("write it like https://gantry.example.com or http://127.0.0.1:7000");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return wrong("it must not carry a user or password");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return wrong("it must end before any ? or #");
        }
        if url.scheme() == "http"
            && !url.host_str().is_some_and(is_loopback_host)
            && !plain_text_allowed
        {
            return wrong(
                "plain text to another host would show the token to the network; \
                 use https, or allow plain text explicitly",
            );
        }
        let mut url = url.clone();
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        Ok(Self { url })
    }

    /// The address for people, without a slash at the end.
    pub(crate) fn shown(&self) -> String {
        self.url.as_str().trim_end_matches('/').to_owned()
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The address of an API resource; each segment is escaped.
    pub(crate) fn api(&self, segments: &[&str]) -> Url {
        self.at(["api", "v1"].iter().chain(segments))
    }

    /// The address of the server's readiness check.
    pub(crate) fn ready(&self) -> Url {
        self.at(&["readyz"])
    }

    fn at<'a>(&self, segments: impl IntoIterator<Item = &'a &'a str>) -> Url {
        let mut url = self.url.clone();
        url.path_segments_mut()
            .expect("an http address has path segments")
            .pop_if_empty()
            .extend(segments);
        url
    }
}

fn without_credentials(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(text: &str, plain_text_allowed: bool) -> Result<Base, ClientError> {
        Base::new(&text.parse().expect("an address"), plain_text_allowed)
    }

    #[test]
    fn plain_text_goes_to_loopback_only_unless_it_is_allowed() {
        for near in [
            "http://127.0.0.1:7000",
            "http://[::1]:1",
            "http://localhost",
        ] {
            assert!(base(near, false).is_ok(), "{near}");
        }
        for far in [
            "http://10.0.0.1",
            "http://gantry.example.com",
            "http://127.0.0.1.example.com",
        ] {
            assert!(base(far, false).is_err(), "{far}");
            assert!(base(far, true).is_ok(), "{far}");
        }
        assert!(base("https://gantry.example.com", false).is_ok());
    }

    #[test]
    fn an_address_with_a_password_is_refused_without_repeating_it() {
        let error = base("https://me:hunter2@example.com", false).expect_err("refused");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn resources_stand_below_the_base_path_and_are_escaped() {
        let base = base("https://example.com/gantry", false).expect("it can be used");
        assert_eq!(
            base.api(&["runners", "a/b"]).as_str(),
            "https://example.com/gantry/api/v1/runners/a%2Fb"
        );
        assert_eq!(base.shown(), "https://example.com/gantry");
    }
}
