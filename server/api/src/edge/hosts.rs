//! For which host a request was meant, and which page made it.
//!
//! A page in a browser can make any name of its own lead to this server (DNS rebinding), and is then
//! of one origin with it. So the server answers only for names that are known to be its own, for
//! `localhost`, and for addresses: an address as the host cannot be made to lead elsewhere, so
//! runners and clients may use any address that reaches the server. A request that names a page of
//! another site as its origin is refused; one without an origin comes from no page.

use std::{
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock},
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, Version, header, uri::Authority},
    middleware::Next,
    response::Response,
};
use http::Uri;
use shared_api::Problem;
use shared_types::address::is_loopback_host;
use tonic::Status;

use crate::{
    edge::in_time::is_grpc,
    rest::{Code, respond},
};

/// Longest part of a foreign name that an error repeats, in bytes.
const REPEATED_BYTES: usize = 100;

/// The host names that a request may have, beside the server's addresses and `localhost`. Clones
/// share them.
#[derive(Debug, Clone, Default)]
pub struct HostNames(Arc<RwLock<Vec<String>>>);

impl FromIterator<String> for HostNames {
    /// Reads names without regard to case; `*.example.com` stands for any one label before `example.com`.
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        let shared = Self::default();
        shared.replace(names);
        shared
    }
}

impl HostNames {
    /// Accepts these names from now on, and none of the earlier ones.
    pub fn replace(&self, names: impl IntoIterator<Item = String>) {
        let names = names.into_iter().map(|name| plain(&name)).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = names;
    }

    fn has(&self, host: &str) -> bool {
        let parent = host.split_once('.').map(|(_, parent)| parent);
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        names.iter().any(|name| match name.strip_prefix("*.") {
            Some(of) => parent == Some(of),
            None => name == host,
        })
    }
}

/// Refuses a request for a foreign host or from a foreign page; passes on all others.
pub(crate) async fn hosts(
    State(names): State<HostNames>,
    request: Request,
    next: Next,
) -> Response {
    let (uri, version, headers) = (request.uri(), request.version(), request.headers());
    match check(&names, uri, version, headers) {
        Ok(()) => next.run(request).await,
        Err(problem) if is_grpc(headers) => Status::permission_denied(problem.detail).into_http(),
        Err(problem) => respond(problem),
    }
}

/// Checks the hosts and origins of a request.
///
/// # Errors
/// Fails with the reason why a request to this address with these headers is refused.
fn check(
    names: &HostNames,
    uri: &Uri,
    version: Version,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (host, more) = (hosts.next(), hosts.next().is_some());
    let host = host.map(|host| Authority::try_from(host.as_bytes()));
    let host = host.transpose().map_err(|_| no_host())?;
    if more {
        return Err(no_host());
    }
    // If both are there, a proxy before the server may have used either.
    let asked: Vec<&Authority> = uri.authority().into_iter().chain(&host).collect();
    // HTTP/1.0 knows no host, and no browser speaks it.
    if asked.is_empty() && version != Version::HTTP_10 {
        return Err(no_host());
    }
    if let Some(foreign) = asked.iter().find(|asked| !answers(names, asked)) {
        return Err(misdirected(foreign));
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let all_ours = origins.all(|origin| is_ours(names, origin.as_bytes(), &asked));
    if all_ours {
        Ok(())
    } else {
        Err(foreign_page())
    }
}

/// The hosts of a request that [`hosts`] has passed on.
fn asked(uri: &Uri, headers: &HeaderMap) -> Vec<Authority> {
    let hosts = headers.get_all(header::HOST).into_iter();
    let hosts = hosts.filter_map(|host| Authority::try_from(host.as_bytes()).ok());
    uri.authority().cloned().into_iter().chain(hosts).collect()
}

/// The host and port of a request that [`hosts`] has passed on, as the client wrote them.
pub(crate) fn asked_host(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    asked(uri, headers)
        .first()
        .map(|host| host.as_str().to_owned())
}

/// True if the request was made on the server's own machine, as its host says.
pub(crate) fn is_on_loopback(uri: &Uri, headers: &HeaderMap) -> bool {
    let asked = asked(uri, headers);
    !asked.is_empty() && asked.iter().all(|asked| is_loopback_host(&host(asked)))
}

/// True if a page of this origin belongs to this server: scheme, host and port are the same.
pub(crate) fn is_own_origin(origin: &str, scheme: &str, uri: &Uri, headers: &HeaderMap) -> bool {
    let Some(origin) = Uri::try_from(origin).ok() else {
        return false;
    };
    let port = |authority: &Authority| match (authority.port_u16(), scheme) {
        (Some(port), _) => port,
        (None, "https") => 443,
        (None, _) => 80,
    };
    let whole = |authority: &Authority| (host(authority), port(authority));
    let asked = asked(uri, headers);
    origin.scheme_str() == Some(scheme)
        && origin.authority().is_some_and(|origin| {
            !asked.is_empty() && asked.iter().all(|asked| whole(asked) == whole(origin))
        })
}

fn answers(names: &HostNames, authority: &Authority) -> bool {
    let host = host(authority);
    let is_address = host.parse::<IpAddr>().is_ok();
    !authority.as_str().contains('@') && (is_address || is_loopback_host(&host) || names.has(&host))
}

/// True if a page of this origin may send requests. Its origin is this host and port, or one of the
/// server's names. On the server's own machine it may also be another program there.
fn is_ours(names: &HostNames, origin: &[u8], asked: &[&Authority]) -> bool {
    let Some(origin) = Uri::try_from(origin).ok().filter(is_of_the_web) else {
        return false;
    };
    origin.authority().is_some_and(|origin| {
        let from = host(origin);
        names.has(&from)
            || asked.iter().any(|asked| {
                let same = plain(asked.as_str()) == plain(origin.as_str());
                same || is_loopback_host(&host(asked)) && is_loopback_host(&from)
            })
    })
}

fn is_of_the_web(origin: &Uri) -> bool {
    matches!(origin.scheme_str(), Some("http" | "https"))
}

fn host(authority: &Authority) -> String {
    let host = authority.host();
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    plain(address.unwrap_or(host))
}

/// The form in which names are compared: lower case, without the dot that ends a full name.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn no_host() -> Problem {
    Code::BadRequest.problem(
        "the request does not say, once and readably, for which host it is: send one Host header",
    )
}

fn misdirected(authority: &Authority) -> Problem {
    // An authority is ASCII.
    let host = &authority.host()[..authority.host().len().min(REPEATED_BYTES)];
    Code::Misdirected.problem(format!(
        "{host:?} is not known as a name of this server: use its address or localhost, or add the name to names under [server] in gantry.toml and run gantry-server reload"
    ))
}

fn foreign_page() -> Problem {
    Code::ForeignOrigin.problem(
        "the request comes from a page of another site: add that site's name to names under [server] in gantry.toml if it is yours",
    )
}

#[cfg(test)]
mod tests;
