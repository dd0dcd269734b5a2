//! Programs that ask to be let in.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use server_app::ClientDocuments;
use shared_types::{address::is_loopback_host, clean::clean_line, limits::MAX_NAME_BYTES};
use url::Url;

/// The beginning of the id of a program that registered.
const REGISTERED: &str = "gantry_client_";

/// Longest id, in bytes.
const MAX_ID_BYTES: usize = 4 * 1024;

/// Most addresses of one program.
const MAX_REDIRECTS: usize = 8;

/// Longest address, in bytes.
const MAX_REDIRECT_BYTES: usize = 512;

/// Schemes that open something else than a program.
const NO_PROGRAMS: [&str; 9] = [
    "about",
    "blob",
    "data",
    "file",
    "filesystem",
    "ftp",
    "javascript",
    "vbscript",
    "view-source",
];

/// A program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) id: String,
    /// The name that it gives itself.
    pub(super) name: String,
    /// The addresses to which it may be sent an answer.
    pub(super) redirects: Vec<String>,
}

/// The words of a program about itself: to register, and in its document.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Registration {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[serde(default)]
    client_name: String,
    redirect_uris: Vec<String>,
}

impl Client {
    /// The program of this id. A program with a document has the document's address as its id.
    ///
    /// # Errors
    /// If there is none; the text tells a person why.
    pub(super) async fn of(id: &str, documents: &ClientDocuments) -> Result<Self, String> {
        if id.len() > MAX_ID_BYTES {
            return Err("the program's id is too long".to_owned());
        }
        if let Some(written) = id.strip_prefix(REGISTERED) {
            let json = BASE64_URL_SAFE_NO_PAD.decode(written).ok();
            let said = json.and_then(|json| serde_json::from_slice(&json).ok());
            let said = said.ok_or("the program's id is not whole; register it again")?;
            return Self::known(id, said);
        }
        if !is_document(id) {
            return Err("the program is not known here; it has to register first".to_owned());
        }
        let document = documents.read(id).await?;
        let said = serde_json::from_str::<Registration>(&document)
            .map_err(|_| format!("there is no document about a program at {id}"))?;
        match said.client_id.as_deref() == Some(id) {
            true => Self::known(id, said),
            false => Err(format!("the document at {id} is about another program")),
        }
    }

    /// A program that registers.
    ///
    /// # Errors
    /// If it can be sent no answer.
    pub(super) fn registered(said: Registration) -> Result<Self, String> {
        let said = Registration {
            client_id: None,
            client_name: name(&said.client_name),
            ..said
        };
        let json = serde_json::to_vec(&said).map_err(|error| error.to_string())?;
        let id = format!("{REGISTERED}{}", BASE64_URL_SAFE_NO_PAD.encode(json));
        match id.len() > MAX_ID_BYTES {
            true => Err("these are too many addresses".to_owned()),
            false => Self::known(&id, said),
        }
    }

    fn known(id: &str, said: Registration) -> Result<Self, String> {
        if !(1..=MAX_REDIRECTS).contains(&said.redirect_uris.len()) {
            return Err(format!("a program has 1 to {MAX_REDIRECTS} redirect_uris"));
        }
        if let Some(wrong) = said.redirect_uris.iter().find(|uri| !is_redirect(uri)) {
            return Err(format!(
                "{:?} is no address to send an answer to: use https, http on the person's own machine, or a scheme of \
                 the program's own",
                clean_line(wrong, 100)
            ));
        }
        Ok(Self {
            id: id.to_owned(),
            name: name(&said.client_name),
            redirects: said.redirect_uris,
        })
    }

    /// True if this is an address of the program: exactly, or on the person's own machine on any port (RFC 8252, 7.3).
    pub(super) fn may_be_sent_to(&self, address: &str) -> bool {
        is_redirect(address)
            && self.redirects.iter().any(|known| {
                known == address || is_loopback(known) && on_no_port(known) == on_no_port(address)
            })
    }
}

/// The name in lists of keys.
fn name(said: &str) -> String {
    let name = clean_line(said.trim(), MAX_NAME_BYTES);
    match name.is_empty() {
        true => "a program (MCP)".to_owned(),
        false => name,
    }
}

fn is_document(id: &str) -> bool {
    Url::parse(id).is_ok_and(|url| {
        url.scheme() == "https"
            && url.as_str() == id
            && url.path() != "/"
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    })
}

fn is_redirect(address: &str) -> bool {
    let is_plain = address.len() <= MAX_REDIRECT_BYTES
        && address.bytes().all(|byte| byte.is_ascii_graphic())
        && !address.contains(['"', '\'', '<', '>', '\\', ';', ',']);
    is_plain
        && Url::parse(address).is_ok_and(|url| {
            let is_whole = url.fragment().is_none() && url.username().is_empty();
            is_whole
                && match url.scheme() {
                    "https" => url.has_host(),
                    "http" => is_loopback(address),
                    scheme => !NO_PROGRAMS.contains(&scheme),
                }
        })
}

fn is_loopback(address: &str) -> bool {
    Url::parse(address)
        .is_ok_and(|url| url.scheme() == "http" && url.host_str().is_some_and(is_loopback_host))
}

fn on_no_port(address: &str) -> Option<Url> {
    let mut url = Url::parse(address).ok()?;
    url.set_port(None).ok()?;
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered(uris: &[&str]) -> Result<Client, String> {
        Client::registered(Registration {
            client_id: None,
            client_name: "Claude\u{1b}[2J Code".to_owned(),
            redirect_uris: uris.iter().map(|&uri| uri.to_owned()).collect(),
        })
    }

    #[test]
    fn an_answer_goes_to_an_address_of_the_program_alone() {
        let here = "http://localhost:1234/callback";
        let client = registered(&[here, "https://app.test/cb?x=1", "cursor://a.b/cb"]);
        let client = client.expect("it registers");
        assert!(!client.name.contains('\u{1b}'));
        for (address, may) in [
            (here, true),
            ("http://localhost:9/callback", true),
            ("http://localhost/callback", true),
            ("http://127.0.0.1:1234/callback", false),
            ("http://localhost:9/other", false),
            ("http://localhost:9/callback?x", false),
            ("https://app.test/cb?x=1", true),
            ("https://app.test:444/cb?x=1", false),
            ("https://app.test/cb?x=1#a", false),
            ("cursor://a.b/cb", true),
            ("cursor://a.c/cb", false),
            ("", false),
        ] {
            assert_eq!(client.may_be_sent_to(address), may, "{address}");
        }
    }

    #[test]
    fn an_address_that_opens_no_program_is_not_registered() {
        for address in [
            "javascript:alert(1)",
            "data:text/html,x",
            "http://app.test/cb",
            "https://u@app.test/cb",
            "https://app.test/#a",
            "https://app.test/\"x",
            "/cb",
            "",
        ] {
            assert!(registered(&[address]).is_err(), "{address}");
        }
        assert!(registered(&[]).is_err());
        assert!(registered(&["https://a.test/b"; 9]).is_err());
    }
}
