//! The server's address, and the rule that secrets go to other machines encrypted only.

use std::fmt;

use http::Uri;
use shared_types::address::is_loopback_host;
use url::{Host, Url};

/// Addresses of one server, at most.
pub(crate) const MAX_SERVERS: usize = 16;

/// The address of the server: a scheme, a host and a port, nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerUrl {
    host: Host<String>,
    port: u16,
    tls: bool,
}

impl ServerUrl {
    /// Reads `http://…` or `https://…`. Plain text goes to this machine only, unless its owner
    /// allows more.
    pub(crate) fn parse(text: &str, allow_plain_text: bool) -> Result<Self, UrlError> {
        let wrong = |reason: String| UrlError::Wrong {
            text: text.to_owned(),
            reason,
        };
        let url = Url::parse(text.trim()).map_err(|error| wrong(error.to_string()))?;
        let tls = match url.scheme() {
            "https" => true,
            "http" => false,
            other => return Err(wrong(format!("{other} is neither http nor https"))),
        };
        let host = url.host().map(|host| host.to_owned());
        let host = host.ok_or_else(|| wrong("it has no host".into()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlError::Credentials);
        }
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if !bare {
            return Err(wrong("it has more than a host and a port".into()));
        }
        if !tls && !allow_plain_text && !is_loopback_host(&host.to_string()) {
            return Err(UrlError::PlainText(host.to_string()));
        }
        let port = url.port_or_known_default();
        Ok(Self {
            host,
            port: port.ok_or_else(|| wrong("it has no port".into()))?,
            tls,
        })
    }

    /// True if the connection is encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        self.tls
    }

    /// The host as the resolver and TLS take it: without the brackets of an IPv6 address.
    pub(crate) fn host(&self) -> String {
        match &self.host {
            Host::Ipv6(address) => address.to_string(),
            other => other.to_string(),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// `host:port`.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Whom requests are addressed to.
    pub(crate) fn origin(&self) -> Uri {
        let uri = self.to_string().parse();
        uri.expect("a scheme, a host and a port are a URI")
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

/// The reason why a text is not a server's address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlError {
    #[error("{text:?} is not a server's address ({reason}): write it as https://host:port")]
    Wrong { text: String, reason: String },
    /// It never quotes them.
    #[error("a server's address has no user name or password: leave them out")]
    Credentials,
    #[error(
        "plain text to {0} would show the runner's credentials to the network: use https, or say --allow-plain-text"
    )]
    PlainText(String),
    #[error(
        "a server has from 1 to {MAX_SERVERS} addresses: name them with --server or `gantry-runner servers`"
    )]
    Number,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_scheme_a_host_and_a_port() {
        for (text, normal) in [
            ("https://gantry.example", "https://gantry.example:443"),
            (" http://localhost:7400/ ", "http://localhost:7400"),
            ("http://127.8.8.8:1", "http://127.8.8.8:1"),
            ("http://[::1]:1", "http://[::1]:1"),
        ] {
            let url = ServerUrl::parse(text, false).expect("an address");
            assert_eq!(url.to_string(), normal);
        }
        let v6 = ServerUrl::parse("http://[::1]:1", false).expect("an address");
        assert_eq!(v6.host(), "::1");
    }

    #[test]
    fn anything_else_is_refused_with_how_to_write_it() {
        for text in [
            "",
            "gantry.example",
            "localhost:7400",
            "ftp://x",
            "https://x/path",
            "https://x?y",
            "https://x:99999",
        ] {
            let error = ServerUrl::parse(text, true)
                .expect_err("a refusal")
                .to_string();
            assert!(error.contains("https://host:port"), "{error}");
        }
        let error = ServerUrl::parse("https://me:secret@x", true).expect_err("a refusal");
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn plain_text_leaves_this_machine_only_when_that_is_allowed() {
        for text in [
            "http://10.0.0.1:7400",
            "http://gantry.example",
            "http://localhost.evil",
        ] {
            let refused = ServerUrl::parse(text, false);
            assert!(
                matches!(refused, Err(UrlError::PlainText(_))),
                "{refused:?}"
            );
            assert!(ServerUrl::parse(text, true).is_ok());
        }
    }
}
