//! The addresses of the public internet, by IANA's registries of special addresses
//! (<https://www.iana.org/assignments/iana-ipv4-special-registry>, and that of IPv6).
//!
//! The server stands in a network of its own. A request to an address that a person or a model names must not reach
//! the services of that network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// True for an address of the public internet. An address of IPv6 that stands for one of IPv4 is public only where it
/// is that address in IPv6 notation (`::ffff:8.8.8.8`). All tunnels and translations count as private.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let octets @ [a, b, c, _] = address.octets();
    let is_special = matches!(
        (a, b, c),
        (0 | 10 | 127 | 224.., ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    );
    !is_special && octets != AZURE_PLATFORM
}

/// The address at which Azure answers its machines, and only them
/// (<https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16>).
const AZURE_PLATFORM: [u8; 4] = [168, 63, 129, 16];

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    let [first, second, ..] = address.segments();
    // Addresses of the internet stand in 2000::/3. Those of tunnels lead to an address of IPv4 within them.
    let is_global = first & 0xe000 == 0x2000;
    let is_tunnel = first == 0x2002 || first == 0x2001 && second < 0x200;
    let is_documentation = first == 0x2001 && second == 0xdb8 || first == 0x3fff && second < 0x1000;
    is_global && !is_tunnel && !is_documentation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_public_if_no_registry_calls_it_special() {
        for (kind, addresses) in [
            ("unspecified", &["0.0.0.0", "0.255.255.255", "::"][..]),
            ("loopback", &["127.0.0.1", "127.255.255.255", "::1"]),
            (
                "private",
                &[
                    "10.0.0.0",
                    "10.255.255.255",
                    "172.16.0.0",
                    "172.31.255.255",
                    "192.168.0.0",
                    "192.168.255.255",
                ],
            ),
            ("unique local", &["fc00::", "fdff:ffff::1", "fd00:ec2::254"]),
            (
                "link local",
                &["169.254.0.1", "169.254.169.254", "fe80::1", "febf::1"],
            ),
            ("site local", &["fec0::1"]),
            (
                "shared by carriers",
                &["100.64.0.0", "100.100.100.200", "100.127.255.255"],
            ),
            (
                "of protocols",
                &[
                    "192.0.0.1",
                    "192.0.0.192",
                    "192.88.99.1",
                    "5f00::1",
                    "100::1",
                ],
            ),
            (
                "documentation",
                &[
                    "192.0.2.1",
                    "198.51.100.1",
                    "203.0.113.1",
                    "2001:db8::1",
                    "3fff::1",
                    "3fff:fff:ffff::1",
                ],
            ),
            ("benchmarks", &["198.18.0.1", "198.19.255.255"]),
            (
                "multicast",
                &["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
            ),
            ("reserved", &["240.0.0.1", "254.0.0.1"]),
            ("broadcast", &["255.255.255.255"]),
            ("of a cloud", &["168.63.129.16"]),
            (
                "mapped",
                &[
                    "::ffff:127.0.0.1",
                    "::ffff:10.0.0.1",
                    "::ffff:169.254.169.254",
                    "::ffff:0:0",
                    "::ffff:168.63.129.16",
                ],
            ),
            ("compatible", &["::127.0.0.1", "::10.0.0.1", "::8.8.8.8"]),
            ("translated", &["::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8"]),
            (
                "NAT64",
                &[
                    "64:ff9b::127.0.0.1",
                    "64:ff9b::169.254.169.254",
                    "64:ff9b::8.8.8.8",
                    "64:ff9b:1::10.0.0.1",
                ],
            ),
            (
                "6to4",
                &["2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::1"],
            ),
            (
                "Teredo and its neighbours",
                &["2001::1", "2001:0:4136:e378::1", "2001:1ff:ffff::1"],
            ),
        ] {
            for text in addresses {
                let address = text.parse().expect("an address");
                assert!(!is_public(address), "{text} is {kind}");
            }
        }
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2003::1",
            "2606:4700::1",
            "3fff:1000::1",
        ] {
            assert!(is_public(text.parse().expect("an address")), "{text}");
        }
    }
}
