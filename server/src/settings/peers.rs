//! `[peers]`: the listener for the other servers of the database.

use std::net::SocketAddr;

use anyhow::bail;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{DatabaseChoice, listen::Listen};

/// The section of the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PeersSection {
    /// The address to answer other servers on, as `--peer-listen`. Only with PostgreSQL [default: none].
    #[schemars(with = "Option<String>", example = &"0.0.0.0:7001")]
    pub(super) listen: Option<Listen>,
    /// The host and port at which other servers reach that address, as `--peer-address` [default: the address of
    /// `listen`, or this machine's name where that is every address].
    #[schemars(example = &"gantry-1.example.com:7001")]
    pub(super) address: Option<String>,
}

/// The listener for other servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerSettings {
    pub(crate) listen: SocketAddr,
    /// The host and port that other servers are told.
    address: Option<String>,
}

impl PeersSection {
    /// The listener, where one is set.
    ///
    /// # Errors
    /// Fails without PostgreSQL, for an address without a listener, and for one that is no host and port.
    pub(super) fn settings(
        self,
        listen: Option<Listen>,
        address: Option<String>,
        database: &DatabaseChoice,
    ) -> anyhow::Result<Option<PeerSettings>> {
        let address = address.or(self.address);
        let Some(listen) = listen.or(self.listen) else {
            if address.is_some() {
                bail!(
                    "--peer-address, or address under [peers] in gantry.toml, needs an address to listen on: add --peer-listen, or listen under [peers]"
                );
            }
            return Ok(None);
        };
        if let DatabaseChoice::File(_) = database {
            bail!(
                "--peer-listen, or listen under [peers] in gantry.toml, needs PostgreSQL: a database that is a file has one server"
            );
        }
        let address = address.or(listen.name.map(|name| host_and_port(&name, listen.address)));
        if let Some(address) = &address
            && !is_host_and_port(address)
        {
            bail!(
                "{address:?} is no host and port: write --peer-address, or address under [peers], as gantry-1.example.com:7001"
            );
        }
        Ok(Some(PeerSettings {
            listen: listen.address,
            address,
        }))
    }
}

impl PeerSettings {
    /// The address that other servers are told, where this one is bound and the machine has this name.
    pub(crate) fn advertised(&self, bound: SocketAddr, machine: Option<&str>) -> String {
        match (&self.address, machine) {
            (Some(address), _) => address.clone(),
            (None, Some(machine)) if bound.ip().is_unspecified() => host_and_port(machine, bound),
            (None, _) => bound.to_string(),
        }
    }
}

fn host_and_port(host: &str, address: SocketAddr) -> String {
    format!("{host}:{}", address.port())
}

fn is_host_and_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}
