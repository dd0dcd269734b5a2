//! Ranges of network addresses.

use std::{fmt, net::IpAddr, str::FromStr};

/// All addresses that begin with the same bits (RFC 4632), such as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    network: IpAddr,
    bits: u8,
}

impl AddressRange {
    /// Whether the address lies in the range. An IPv4 address that is written as one of IPv6 is
    /// the same.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.network.is_ipv4() && first(address, self.bits) == self.network
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
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().map_err(|_| NotARange)?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NotARange)?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(all);
        if bits > all {
            return Err(NotARange);
        }
        Ok(Self {
            network: first(address, bits),
            bits,
        })
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

/// The address with all but its first `bits` bits cleared.
fn first(address: IpAddr, bits: u8) -> IpAddr {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
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
}
