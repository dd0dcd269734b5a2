//! Network addresses: ranges of them, those of the public internet, and those of this machine.

mod public;

use std::{fmt, net::IpAddr, str::FromStr};

use ipnet::IpNet;

pub use public::is_public;

/// All addresses that begin with the same bits (RFC 4632), such as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange(IpNet);

impl AddressRange {
    /// Tells if the address lies in the range. An IPv4 address in IPv6 notation counts as the IPv4
    /// address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

/// The text is no range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a range of addresses is written like 10.0.0.0/8 or 2001:db8::/32")]
pub struct NotARange;

impl FromStr for AddressRange {
    type Err = NotARange;

    /// One address alone is a range of itself.
    fn from_str(text: &str) -> Result<Self, NotARange> {
        let range = match text.parse::<IpNet>() {
            Ok(range) => range,
            Err(_) => text.parse::<IpAddr>().map_err(|_| NotARange)?.into(),
        };
        Ok(Self(range.trunc()))
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Tells if the host of a URL (a name, `127.0.0.1`, `::1` or `[::1]`) is this machine. Traffic to
/// this machine crosses no network. Names below `localhost` are this machine by RFC 6761, section
/// 6.3.
pub fn is_loopback_host(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => {
            let name = host.to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_addresses_that_begin_with_its_bits() {
        for (range, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.1.2.3/8", "::ffff:10.0.0.1", "::10.0.0.1"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
            ("::/0", "::1", "127.0.0.1"),
        ] {
            let range: AddressRange = range.parse().expect("a range");
            assert!(
                range.contains(inside.parse().expect("an address")),
                "{range}"
            );
            assert!(
                !range.contains(outside.parse().expect("an address")),
                "{range}"
            );
            assert_eq!(range.to_string().parse(), Ok(range));
        }
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10/8",
            "a/8",
            "10.0.0.0/-1",
        ] {
            assert_eq!(text.parse::<AddressRange>(), Err(NotARange), "{text}");
        }
    }

    #[test]
    fn this_machine_is_localhost_and_what_lies_below_it_and_the_loopback_addresses() {
        for host in [
            "localhost",
            "LOCALHOST",
            "a.localhost",
            "127.0.0.1",
            "127.9.9.9",
            "::1",
        ] {
            assert!(is_loopback_host(host), "{host}");
        }
        assert!(is_loopback_host("[::1]") && is_loopback_host("[::ffff:127.0.0.1]"));
        for host in [
            "localhost.example.com",
            "notlocalhost",
            "10.0.0.1",
            "[::2]",
            "0.0.0.0",
            "",
        ] {
            assert!(!is_loopback_host(host), "{host}");
        }
    }
}
