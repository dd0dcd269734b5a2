//! The way from a tool server to its authorization server: RFC 9728 for the one, RFC 8414 and OpenID Connect Discovery for
//! the other.

use std::collections::BTreeSet;

use serde_json::Value;
use shared_types::clean::peer_words;
use url::Url;

use super::{Challenge, MAX_WORD_BYTES, SignInError, SignIns, led_to, scopes_of, texts};

/// Most authorization servers of one tool server that are looked at.
const MAX_AUTHORITIES: usize = 3;

/// An authorization server, and the tool server as it knows it.
#[derive(Debug, Clone)]
pub struct Found {
    /// The tool server's name for itself.
    pub(super) resource: String,
    /// The scopes that the tool server names.
    scopes: BTreeSet<String>,
    pub(super) authority: Authority,
}

/// An authorization server.
#[derive(Debug, Clone)]
pub(super) struct Authority {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) revocation_endpoint: Option<Url>,
    /// The ways in which clients may show their secret.
    pub(super) methods: Vec<String>,
    scopes: BTreeSet<String>,
    pub(super) takes_documents: bool,
    pub(super) says_issuer: bool,
}

impl Found {
    /// The issuer at which the person would sign in.
    pub fn issuer(&self) -> &str {
        &self.authority.issuer
    }

    /// The scopes to ask for.
    pub(super) fn scopes(
        &self,
        challenge: &Challenge,
        also: &BTreeSet<String>,
    ) -> BTreeSet<String> {
        let mut scopes = match &challenge.scope {
            Some(scope) => scopes_of(scope),
            None => self.scopes.clone(),
        };
        scopes.extend(also.iter().cloned());
        // A scope of the authorization server, and none of the tool server's, which lets tokens be renewed.
        let offline = "offline_access";
        match self.authority.scopes.contains(offline) {
            true => scopes.insert(offline.to_owned()),
            false => scopes.remove(offline),
        };
        scopes
    }
}

impl SignIns {
    /// The authorization server of the tool server at this address, which has refused so: the one with this issuer, where
    /// one is declared.
    ///
    /// # Errors
    /// There is none, it cannot be reached, or what the servers say of one another does not fit.
    pub async fn find(
        &self,
        server: &Url,
        challenge: &Challenge,
        declared: Option<&str>,
    ) -> Result<Found, SignInError> {
        let described = self.described(server, challenge).await?;
        let Some(described) = described else {
            // Before the documents about tool servers, the authorization server was at the same place.
            let origin = server.origin().ascii_serialization();
            if let Some(declared) = declared.filter(|declared| *declared != origin) {
                return Err(SignInError::other_issuer(&origin, declared));
            }
            let authority = self.authority(server, &origin).await?;
            let authority = authority.ok_or_else(|| {
                SignInError::NotFound("no document describes it or its authorization server".into())
            })?;
            let mut resource = server.clone();
            resource.set_fragment(None);
            return Ok(Found {
                resource: resource.to_string(),
                scopes: BTreeSet::new(),
                authority,
            });
        };
        let resource = described["resource"].as_str().unwrap_or_default();
        if !covers(resource, server) {
            return Err(SignInError::Unsafe(format!(
                "the tool server is described as another one: {}",
                peer_words(resource)
            )));
        }
        let named: Vec<_> = texts(&described["authorization_servers"]).collect();
        if let (Some(declared), Some(first)) = (declared, named.first())
            && !named.contains(&declared)
        {
            return Err(SignInError::other_issuer(first, declared));
        }
        let is_declared = |issuer: &&str| declared.is_none_or(|declared| declared == *issuer);
        let issuers = named.into_iter().filter(is_declared).take(MAX_AUTHORITIES);
        let mut why = None;
        for issuer in issuers {
            match self.authority(server, issuer).await {
                Ok(Some(authority)) => {
                    return Ok(Found {
                        resource: resource.to_owned(),
                        scopes: texts(&described["scopes_supported"])
                            .flat_map(scopes_of)
                            .collect(),
                        authority,
                    });
                }
                Ok(None) => {}
                Err(error @ SignInError::Unsafe(_)) => return Err(error),
                Err(error) => why = Some(error),
            }
        }
        let none = "none of its authorization servers describes itself";
        Err(why.unwrap_or_else(|| SignInError::NotFound(none.to_owned())))
    }

    /// The document about a tool server, where there is one.
    async fn described(
        &self,
        server: &Url,
        challenge: &Challenge,
    ) -> Result<Option<Value>, SignInError> {
        if let Some(at) = &challenge.resource_metadata {
            let at = led_to(&self.client, server, at)?;
            let described = self.json(&at).await?;
            let missing = || SignInError::NotFound("its document is not where it says".to_owned());
            return described.map(Some).ok_or_else(missing);
        }
        let name = "oauth-protected-resource";
        for at in [inserted(server, name), rooted(server, name)] {
            if let Some(described) = self.json(&at).await? {
                return Ok(Some(described));
            }
        }
        Ok(None)
    }

    /// The authorization server of this issuer, where one describes itself.
    async fn authority(
        &self,
        server: &Url,
        issuer: &str,
    ) -> Result<Option<Authority>, SignInError> {
        let url = led_to(&self.client, server, issuer)?;
        if url.query().is_some() || url.fragment().is_some() || issuer.len() > MAX_WORD_BYTES {
            return Err(SignInError::Form("its issuer has a query".to_owned()));
        }
        let (oauth, openid) = ("oauth-authorization-server", "openid-configuration");
        let mut places = vec![inserted(&url, oauth), inserted(&url, openid)];
        if url.path() != "/" {
            places.push(appended(&url, openid));
        }
        for at in places {
            if let Some(written) = self.json(&at).await? {
                return self.read(server, issuer, &written).map(Some);
            }
        }
        Ok(None)
    }

    fn read(&self, server: &Url, issuer: &str, written: &Value) -> Result<Authority, SignInError> {
        let named = written["issuer"].as_str().unwrap_or_default();
        if named != issuer {
            return Err(SignInError::Unsafe(format!(
                "the authorization server {} calls itself {}",
                peer_words(issuer),
                peer_words(named)
            )));
        }
        if !texts(&written["code_challenge_methods_supported"]).any(|method| method == "S256") {
            return Err(SignInError::Unsafe(format!(
                "the authorization server {} does not offer PKCE with S256",
                peer_words(issuer)
            )));
        }
        let place = |name: &str| {
            let at = written[name].as_str();
            at.map(|at| led_to(&self.client, server, at)).transpose()
        };
        let needed = |name: &str| {
            place(name)?.ok_or_else(|| SignInError::Form(format!("it names no {name}")))
        };
        let is = |name: &str| written[name].as_bool() == Some(true);
        Ok(Authority {
            issuer: issuer.to_owned(),
            authorization_endpoint: needed("authorization_endpoint")?,
            token_endpoint: needed("token_endpoint")?,
            registration_endpoint: place("registration_endpoint")?,
            revocation_endpoint: place("revocation_endpoint")?,
            methods: texts(&written["token_endpoint_auth_methods_supported"])
                .map(str::to_owned)
                .collect(),
            scopes: texts(&written["scopes_supported"])
                .flat_map(scopes_of)
                .collect(),
            takes_documents: is("client_id_metadata_document_supported"),
            says_issuer: is("authorization_response_iss_parameter_supported"),
        })
    }
}

/// True if the address is that of the resource, or lies below it.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let above = resource.path().trim_end_matches('/');
    let below = server.path().strip_prefix(above);
    resource.origin() == server.origin()
        && resource.fragment().is_none()
        && resource
            .query()
            .is_none_or(|query| server.query() == Some(query))
        && below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

/// The well-known address with the path behind it.
fn inserted(url: &Url, name: &str) -> Url {
    let path = url.path().trim_end_matches('/');
    with_path(url, &format!("/.well-known/{name}{path}"))
}

/// The well-known address behind the path.
fn appended(url: &Url, name: &str) -> Url {
    let path = url.path().trim_end_matches('/');
    with_path(url, &format!("{path}/.well-known/{name}"))
}

/// The well-known address of the host.
fn rooted(url: &Url, name: &str) -> Url {
    with_path(url, &format!("/.well-known/{name}"))
}

fn with_path(url: &Url, path: &str) -> Url {
    let mut at = url.clone();
    at.set_path(path);
    at.set_query(None);
    at.set_fragment(None);
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_covers_its_own_paths_alone() {
        let server = Url::parse("https://a.example/mcp/one").expect("a URL");
        for (resource, covered) in [
            ("https://a.example/mcp/one", true),
            ("https://a.example/mcp", true),
            ("https://a.example", true),
            ("https://a.example/mc", false),
            ("https://a.example/mcp/one/two", false),
            ("https://a.example:8443/mcp", false),
            ("http://a.example/mcp", false),
            ("https://b.example/mcp", false),
            ("", false),
        ] {
            assert_eq!(covers(resource, &server), covered, "{resource}");
        }
    }
}
