//! The networks that a page may come from.
//!
//! A model names the pages, and strangers write the text that the model reads. The server stands in a network of its
//! own. So every address is checked before a connection, and the connection goes to the checked addresses and no
//! others: the HTTP client resolves a name through [`Checked`] only, once for each connection. A redirect is a new
//! page and is checked again.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use shared_types::{AddressRange, address::is_public};
use url::{Host, Url};

use crate::WebError;

/// Longest address of a page, in bytes.
const MAX_URL_BYTES: usize = 8192;

/// True for an address of an interface of this machine.
fn is_own(address: IpAddr) -> bool {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else {
        // The system did not tell the addresses, so each one counts as its own.
        return true;
    };
    let addresses = interfaces.filter_map(|interface| interface.address);
    let mut ips = addresses.filter_map(|address| {
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    });
    ips.any(|ip| ip == address.to_canonical())
}

/// The networks: those of the public internet, and those that the operator allows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reach {
    allowed: Arc<[AddressRange]>,
}

impl Reach {
    pub(crate) fn new(allowed: Vec<AddressRange>) -> Self {
        Self {
            allowed: allowed.into(),
        }
    }

    /// Public addresses of the server itself are none of the public internet: over them a page would be asked for behind
    /// the firewall.
    fn has(&self, address: IpAddr) -> bool {
        is_public(address) && !is_own(address)
            || self.allowed.iter().any(|range| range.contains(address))
    }

    /// The address of a page that a model wrote.
    ///
    /// # Errors
    /// Those of [`Reach::check`], or if it is no URL.
    pub(crate) fn parse(&self, written: &str) -> Result<Url, WebError> {
        let written = written.trim();
        if written.len() > MAX_URL_BYTES {
            return Err(WebError::Url("it has more than 8192 bytes"));
        }
        let url = Url::parse(written)
            .map_err(|_| WebError::Url("write it whole, like https://example.org/page"))?;
        self.check(url)
    }

    /// The address of a page, if it may be asked for. A name is checked when it is resolved.
    ///
    /// # Errors
    /// Fails if it is no page of the web, or its host is an address in a network that is not allowed.
    pub(crate) fn check(&self, mut url: Url) -> Result<Url, WebError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(WebError::Url("it must begin with https:// or http://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(WebError::Url("it contains a user name or password"));
        }
        if url.as_str().len() > MAX_URL_BYTES {
            return Err(WebError::Url("it has more than 8192 bytes"));
        }
        let address = match url.host() {
            None => return Err(WebError::Url("it names no host")),
            Some(Host::Domain(_)) => None,
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        };
        if address.is_some_and(|address| !self.has(address)) {
            return Err(WebError::Private(host(&url)));
        }
        url.set_fragment(None);
        Ok(url)
    }
}

/// The host of a page, for messages.
pub(crate) fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

/// Finds the addresses of a name.
#[async_trait]
pub(crate) trait Lookup: Send + Sync {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of this machine.
pub(crate) struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// Resolves names. A name with one address that is not allowed is refused, also where its others are.
pub(crate) struct Checked {
    pub(crate) reach: Reach,
    pub(crate) lookup: Arc<dyn Lookup>,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, lookup) = (self.reach.clone(), Arc::clone(&self.lookup));
        Box::pin(async move {
            let found = lookup.lookup(name.as_str()).await?;
            if found.is_empty() {
                return Err("its name has no address".into());
            }
            if !found.iter().all(|address| reach.has(*address)) {
                return Err(NotAllowed.into());
            }
            let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// The refusal of a name by [`Checked`].
#[derive(Debug)]
pub(crate) struct NotAllowed;

impl fmt::Display for NotAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its name has an address in a network that is not allowed")
    }
}

impl std::error::Error for NotAllowed {}

#[cfg(test)]
mod tests;
