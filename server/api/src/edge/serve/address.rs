//! The address of a client behind a proxy, as the proxy names it.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName};

/// The last address in the header, which is the one that the proxy itself has seen. The client may
/// have made up those before it.
pub(super) fn named(headers: &HeaderMap, name: &HeaderName) -> Option<IpAddr> {
    let last = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    let last = last.rsplit(',').next()?.trim();
    let bare = last.trim_start_matches('[').trim_end_matches(']');
    let with_port = || last.parse::<SocketAddr>().map(|address| address.ip());
    bare.parse().or_else(|_| with_port()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(values: &[&'static str]) -> Option<String> {
        let name = HeaderName::from_static("x-forwarded-for");
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&name, value.parse().expect("a header's value"));
        }
        named(&headers, &name).map(|address| address.to_string())
    }

    #[test]
    fn the_address_is_the_one_that_the_proxy_added() {
        for (values, address) in [
            (&["192.0.2.1"][..], "192.0.2.1"),
            (&["198.51.100.7, 192.0.2.1"], "192.0.2.1"),
            (&["198.51.100.7", "192.0.2.1:4711"], "192.0.2.1"),
            (&["[2001:db8::1]:4711"], "2001:db8::1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
        ] {
            assert_eq!(last(values).as_deref(), Some(address), "{values:?}");
        }
        for values in [&[][..], &[""], &["unknown"], &["192.0.2.1, unknown"]] {
            assert_eq!(last(values), None, "{values:?}");
        }
    }
}
