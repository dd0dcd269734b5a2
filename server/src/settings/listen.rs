//! The address of the server: an address or a name of this machine, and a port.

use std::{
    net::{SocketAddr, ToSocketAddrs as _},
    str::FromStr,
};

use serde::Deserialize;

/// The address that the server listens on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Listen {
    pub(crate) address: SocketAddr,
    /// The name that was given in the place of the address.
    pub(crate) name: Option<String>,
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self {
            address,
            name: None,
        }
    }
}

impl FromStr for Listen {
    type Err = String;

    /// An address is taken as it is; a name is looked up, and of its addresses the first of IPv4 is
    /// taken, else the first.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        let wrong = |why: &str| {
            format!(
                "{text:?} {why}: write an address or a name of this machine and a port, such as 127.0.0.1:7000 or localhost:7000"
            )
        };
        let Some((name, _)) = text.rsplit_once(':').filter(|(name, _)| !name.is_empty()) else {
            return Err(wrong("has no port"));
        };
        let found = text.to_socket_addrs();
        let found: Vec<_> = found
            .map_err(|error| wrong(&format!("cannot be looked up ({error})")))?
            .collect();
        let first = found
            .iter()
            .find(|address| address.is_ipv4())
            .or(found.first());
        Ok(Self {
            address: *first.ok_or_else(|| wrong("has no address"))?,
            name: Some(name.to_owned()),
        })
    }
}

impl TryFrom<String> for Listen {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_and_an_address_taken_as_it_is() {
        let listen: Listen = "localhost:7210".parse().expect("every host has one");
        assert!(listen.address.ip().is_loopback() && listen.address.port() == 7210);
        assert_eq!(listen.name.as_deref(), Some("localhost"));
        let listen: Listen = "[::1]:7210".parse().expect("an address");
        assert_eq!((listen.address.port(), listen.name), (7210, None));
        for wrong in [
            "localhost",
            "7210",
            ":7210",
            "localhost:port",
            "localhost:70000",
        ] {
            let error = wrong.parse::<Listen>().expect_err(wrong);
            assert!(error.contains("localhost:7000"), "{error}");
        }
    }
}
