//! The addresses of the server: several of one server, each held to the same identity. Each attempt
//! takes another one than the attempt before.
//!
//! A host name that stands for several machines counts as several endpoints. An attempt begins at
//! the address behind the one at which the last attempt by that name began, and goes on to the
//! others where that does not answer.

use std::{io, net::SocketAddr};

use tokio::net::lookup_host;

use crate::{
    connection::{ConnectError, HANDSHAKE_WITHIN, Route, Transports, within},
    server_url::{MAX_SERVERS, ServerUrl, UrlError},
};

/// All of them, and whose turn it is.
#[derive(Debug)]
pub(crate) struct Endpoints {
    transports: Transports,
    all: Vec<Endpoint>,
    last: usize,
}

#[derive(Debug)]
struct Endpoint {
    url: ServerUrl,
    /// The address at which the last attempt began.
    began_at: Option<SocketAddr>,
    /// Only a WebSocket has passed here.
    only_websocket: bool,
}

impl Endpoints {
    /// Reads the addresses; the first is tried first. Plain text goes to other machines only where
    /// that is allowed.
    pub(crate) fn parse(texts: &[String], allow_plain_text: bool) -> Result<Self, UrlError> {
        if texts.is_empty() || texts.len() > MAX_SERVERS {
            return Err(UrlError::Number);
        }
        let endpoint = |text: &String| {
            let url = ServerUrl::parse(text, allow_plain_text)?;
            Ok(Endpoint {
                url,
                began_at: None,
                only_websocket: false,
            })
        };
        let all = texts.iter().map(endpoint).collect::<Result<Vec<_>, _>>()?;
        let last = all.len() - 1;
        Ok(Self {
            transports: Transports::default(),
            all,
            last,
        })
    }

    /// The same, over what a person lets carry the link.
    pub(crate) fn over(self, transports: Transports) -> Self {
        Self { transports, ..self }
    }

    /// The number of endpoints; one may stand for several addresses.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// All of them, in their order, in the form in which they are kept.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.all.iter().map(|one| one.url.to_string()).collect()
    }

    /// The one whose turn it was last.
    pub(crate) fn last(&self) -> &ServerUrl {
        &self.all[self.last].url
    }

    /// Remembers of the one whose turn it was last whether only a WebSocket passes there.
    pub(crate) fn remember(&mut self, only_websocket: bool) {
        self.all[self.last].only_websocket = only_websocket;
    }

    /// The way for the next attempt.
    pub(crate) async fn next(&mut self) -> Result<Route, ConnectError> {
        self.last = (self.last + 1) % self.all.len();
        let Endpoint {
            url,
            began_at,
            only_websocket,
        } = &mut self.all[self.last];
        let found = within(HANDSHAKE_WITHIN, lookup_host((url.host(), url.port()))).await;
        let mut addresses = match found {
            Ok(found) => found.collect::<Vec<_>>(),
            Err(source) => return Err(unreachable(url, source)),
        };
        begin_behind(&mut addresses, *began_at);
        *began_at = addresses.first().copied();
        if addresses.is_empty() {
            return Err(unreachable(url, io::ErrorKind::NotFound.into()));
        }
        Ok(Route {
            url: url.clone(),
            addresses,
            offer: self.transports.offer(*only_websocket),
        })
    }
}

fn unreachable(url: &ServerUrl, source: io::Error) -> ConnectError {
    ConnectError::Unreachable {
        url: url.to_string(),
        source,
    }
}

/// Turns the list so that the address behind `last` comes first. The resolver may change the order
/// each time, so it is the address that counts and not its place.
fn begin_behind(addresses: &mut [SocketAddr], last: Option<SocketAddr>) {
    let place = addresses.iter().position(|address| Some(*address) == last);
    if let Some(place) = place {
        let behind = (place + 1) % addresses.len();
        addresses.rotate_left(behind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Offer, Transport};

    fn addresses(hosts: &[u8]) -> Vec<SocketAddr> {
        let address = |host: &u8| SocketAddr::from(([10, 0, 0, *host], 7400));
        hosts.iter().map(address).collect()
    }

    /// The addresses at which attempts begin, by the resolver's answer each time.
    fn beginnings(answers: &[&[u8]]) -> Vec<SocketAddr> {
        let mut last = None;
        let begun = answers.iter().filter_map(|answer| {
            let mut addresses = addresses(answer);
            begin_behind(&mut addresses, last);
            last = addresses.first().copied();
            last
        });
        begun.collect()
    }

    #[tokio::test]
    async fn every_attempt_goes_to_another_endpoint_and_then_around_again() {
        let texts = ["http://127.0.0.1:1", "http://127.0.0.1:2", "http://[::1]:3"];
        let mut endpoints = Endpoints::parse(&texts.map(str::to_owned), false).expect("addresses");
        for text in texts.iter().chain(&texts) {
            let route = endpoints.next().await.expect("a literal needs no resolver");
            assert_eq!(route.url.to_string(), *text);
            assert_eq!(format!("http://{}", route.addresses[0]), *text);
            assert_eq!(endpoints.last(), &route.url);
        }
    }

    #[tokio::test]
    async fn where_only_a_websocket_passed_nothing_else_is_offered_until_it_does_not_pass() {
        let texts = ["http://127.0.0.1:1", "http://127.0.0.1:2"];
        let mut endpoints = Endpoints::parse(&texts.map(str::to_owned), false).expect("addresses");
        let mut offers = Vec::new();
        for only_websocket in [true, false, false, false, false] {
            offers.push(endpoints.next().await.expect("a route").offer);
            endpoints.remember(only_websocket);
        }
        let websocket = Offer::Only(Transport::WebSocket);
        let (either, other) = (Offer::Either, Offer::Either);
        assert_eq!(offers, [either, other, websocket, other, either]);
    }

    #[test]
    fn every_attempt_by_one_name_begins_at_another_of_its_addresses() {
        let all: &[u8] = &[1, 2, 3];
        assert_eq!(beginnings(&[all; 4]), addresses(&[1, 2, 3, 1]));
        let mut turned = addresses(all);
        let first = turned[0];
        begin_behind(&mut turned, Some(first));
        assert_eq!(turned, addresses(&[2, 3, 1]), "the others follow");
    }

    #[test]
    fn a_resolver_that_changes_its_order_does_not_lead_to_the_same_address_again() {
        assert_eq!(
            beginnings(&[&[1, 2], &[2, 1], &[1, 2]]),
            addresses(&[1, 2, 1])
        );
        assert_eq!(beginnings(&[&[1, 2], &[3, 4]]), addresses(&[1, 3]));
    }

    #[test]
    fn there_is_at_least_one_endpoint_and_no_more_than_are_allowed() {
        let many = vec!["http://127.0.0.1:1".to_owned(); MAX_SERVERS + 1];
        for texts in [&[][..], &many] {
            let refused = Endpoints::parse(texts, false).expect_err("a refusal");
            assert!(refused.to_string().contains("from 1 to 16"), "{refused}");
        }
        assert!(Endpoints::parse(&many[1..], false).is_ok());
    }
}
