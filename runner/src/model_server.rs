//! The machine's own model server, which the Gantry server asks over the link.
//!
//! The server names a request out of a closed set, and never an address. The key is read from a file here, goes to the
//! model server alone, and stands in no frame, log or message: it is taken out of answers that quote it. Redirects are not followed, and no proxy is used.

mod asks;
mod key;
mod known;
mod request;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use shared_types::address::is_loopback_host;
use url::{Host, Url};

use self::key::ModelServerKey;
pub(crate) use self::{asks::Asks, known::KnownModels};

/// The model server of this machine. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct ModelServer(Arc<ModelServerTarget>);

#[derive(Debug)]
struct ModelServerTarget {
    host: Host<String>,
    port: u16,
    is_tls: bool,
    /// The path above `chat/completions`, without a slash at its end.
    path: String,
    key: Option<ModelServerKey>,
}

impl ModelServer {
    /// The server at this address, with the key in this file. It is not asked yet.
    ///
    /// # Errors
    /// The address is none, the file cannot be used, or the key would travel unencrypted.
    pub(crate) fn new(address: &str, key_file: Option<&Path>) -> Result<Self, ModelServerError> {
        let url = Url::parse(address.trim()).map_err(|_| ModelServerError::Address)?;
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(ModelServerError::Secret);
        }
        let is_tls = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(ModelServerError::Address),
        };
        let host = url.host().map(|host| host.to_owned());
        let host = host.ok_or(ModelServerError::Address)?;
        let key = key_file.map(ModelServerKey::load).transpose()?;
        if key.is_some() && !is_tls && !is_loopback_host(&host.to_string()) {
            return Err(ModelServerError::PlainText);
        }
        let port = url.port_or_known_default();
        Ok(Self(Arc::new(ModelServerTarget {
            host,
            port: port.ok_or(ModelServerError::Address)?,
            is_tls,
            path: url.path().trim_end_matches('/').to_owned(),
            key,
        })))
    }
}

/// The reason why a model server cannot be used. It quotes neither the address nor the key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelServerError {
    #[error(
        "--model-server is not an address: write the one above chat/completions, such as http://127.0.0.1:11434/v1"
    )]
    Address,
    #[error(
        "--model-server has a user name, a password or a query: leave them out, and put the key into the file of --model-key-file"
    )]
    Secret,
    #[error(
        "the model server's key would travel unencrypted: write --model-server as https://…, or leave --model-key-file out"
    )]
    PlainText,
    #[error("cannot read the model server's key {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("others may read the model server's key {}: run `chmod 600` on it", .0.display())]
    Exposed(PathBuf),
    #[error("{} has no key: write the key into it, alone, on one line", .0.display())]
    NoKey(PathBuf),
}

#[cfg(test)]
mod tests;
