//! The networks that a request may reach.
//!
//! A person may name any model server, and the control plane stands in a network of its own. So the addresses to
//! which a name resolves are checked at each connection, and not once: a name may resolve to another address later.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use shared_types::address::is_public;
use url::{Host, Url};

/// Resolves names, and leaves out the addresses that are not public.
#[derive(Debug)]
pub(super) struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|found| is_public(found.ip())).collect();
            if public.is_empty() {
                return Err("its name resolves to no public address".into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// True if the address of this URL is not one of a private network. A name is checked when it is resolved.
pub(super) fn may_be_public(url: &Url) -> bool {
    match url.host() {
        None => false,
        Some(Host::Domain(name)) => !name.trim_end_matches('.').eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => is_public(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => is_public(IpAddr::V6(address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_private_networks_and_of_this_machine_are_not_public() {
        for private in [
            "http://127.0.0.1/v1",
            "http://localhost:11434/v1",
            "http://LOCALHOST./v1",
            "http://169.254.169.254/latest",
            "http://10.1.2.3/",
            "http://172.20.0.1/",
            "http://192.168.1.1/",
            "http://100.100.0.1/",
            "http://0.0.0.0/",
            "http://2130706433/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[fd00::1]/",
            "http://[fe80::1]/",
        ] {
            let url = Url::parse(private).expect("a URL");
            assert!(!may_be_public(&url), "{private}");
        }
        for public in [
            "https://api.openai.com/v1",
            "https://8.8.8.8/",
            "https://[2606:4700::1]/",
        ] {
            let url = Url::parse(public).expect("a URL");
            assert!(may_be_public(&url), "{public}");
        }
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_a_private_address_is_refused_at_the_connection() {
        let name: Name = "localhost".parse().expect("a name");
        let refused = PublicOnly.resolve(name).await.err().expect("it is refused");
        assert!(
            refused.to_string().contains("no public address"),
            "{refused}"
        );
    }
}
