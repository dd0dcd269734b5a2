//! `gantry login`.

use clap::Args as Arguments;
use shared_types::Digest;
use url::Url;

#[derive(Debug, Arguments)]
pub(crate) struct Login {
    /// Only `-`: the code is always read from standard input
    #[arg(hide = true)]
    pub(crate) code: Option<String>,
    /// The server's address
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<Url>,
    /// The SHA-256 of the server's certificate, if no public authority signed it
    #[arg(long, value_name = "HEX", value_parser = fingerprint)]
    pub(crate) fingerprint: Option<Digest>,
    /// Allow plain HTTP to another host: anyone on the network path can read everything and sign in as you
    #[arg(long)]
    pub(crate) allow_plain_text: bool,
}

/// A fingerprint as people copy it: with or without colons, in either case.
fn fingerprint(text: &str) -> Result<Digest, String> {
    let plain: String = text.chars().filter(|letter| *letter != ':').collect();
    Digest::from_hex(plain.trim())
        .ok_or_else(|| "expected the 64 hexadecimal digits of a SHA-256".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_may_have_colons() {
        let plain = "ab".repeat(32);
        let colons = vec!["AB"; 32].join(":");
        assert_eq!(fingerprint(&plain), fingerprint(&colons));
        assert!(fingerprint("abc").is_err());
    }
}
