//! `gantry keys`.

use clap::{Args as Arguments, Subcommand};
use shared_api::{CreateKey, ScopeName};
use shared_types::parse_duration;

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// List them (the default)
    List {
        /// List the keys of this service account
        #[arg(long, value_name = "NAME")]
        service: Option<String>,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Create an API key
    Add(AddKey),
    /// Revoke a key or sign-in
    Remove {
        /// The key's id, the beginning of it, or its name
        key: String,
        /// Revoke a key of this service account
        #[arg(long, value_name = "NAME")]
        service: Option<String>,
    },
}

#[derive(Debug, Arguments)]
pub(crate) struct AddKey {
    /// The key's name in lists
    name: String,
    /// Create a key of this service account, which an admin adds with: gantry people add-service NAME
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    /// The scopes of the key, separated by commas: chat, runners, exec, read, metrics, admin
    /// [default: chat,runners,exec,read]
    #[arg(long = "scope", value_name = "SCOPES", value_delimiter = ',', value_parser = scope)]
    scopes: Option<Vec<ScopeName>>,
    /// The validity of the key, such as 12h or 30d [default: no expiry]
    #[arg(long, value_name = "TIME", value_parser = key_valid_for)]
    valid_for: Option<u32>,
    /// The source addresses that may use the key, such as 10.0.0.0/8 [default: all]
    #[arg(long, value_name = "ADDRESSES")]
    from: Option<String>,
}

impl AddKey {
    /// The request to the server.
    pub(crate) fn terms(self) -> CreateKey {
        CreateKey {
            name: self.name,
            scopes: self.scopes,
            valid_for_s: self.valid_for,
            from: self.from,
        }
    }
}

fn scope(text: &str) -> Result<ScopeName, String> {
    let word = serde_json::Value::String(text.to_owned());
    serde_json::from_value(word)
        .map_err(|_| "choose among chat, runners, exec, read, metrics, admin".to_owned())
}

fn key_valid_for(text: &str) -> Result<u32, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    u32::try_from(time.as_secs()).map_err(|_| "3660d is the longest".to_owned())
}
