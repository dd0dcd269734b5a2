//! The runner's metrics, on a listener of their own: `GET /metrics`, without a credential, on loopback
//! unless `--metrics` says otherwise.
//!
//! They are a help and no duty: where nothing can be listened on, the runner serves without them.

use std::{
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use shared_telemetry::MetricsHandle;
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

/// Connections at the same time; more wait in the kernel's queue.
const CONNECTIONS: usize = 8;

/// The longest life of a connection: a scrape is asked for and answered in much less.
const CONNECTION_FOR: Duration = Duration::from_secs(60);

/// The longest time for the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(5);

/// Between attempts to accept while the system refuses.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The time after which samples are folded together between scrapes.
const UPKEEP_EVERY: Duration = Duration::from_secs(60);

/// The place of the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricsAt {
    /// Nowhere.
    Off,
    /// At this address.
    Address(SocketAddr),
}

impl FromStr for MetricsAt {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.parse()) {
            ("off", _) => Ok(Self::Off),
            (_, Ok(address)) => Ok(Self::Address(address)),
            (_, Err(_)) => {
                Err("write an address of this machine and a port, such as 127.0.0.1:9465, or off")
            }
        }
    }
}

/// Answers who asks for the metrics, until the runtime ends.
pub(crate) async fn serve(address: SocketAddr, metrics: MetricsHandle) {
    tokio::spawn(upkeep(metrics.clone()));
    let listener = match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!(%address, %error, "the metrics are not shown: stop what uses the address, or choose another with --metrics, or --metrics off");
            return;
        }
    };
    // Port 0 has become another one.
    let address = listener.local_addr().unwrap_or(address);
    tracing::info!(%address, "the metrics are shown");
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let only_here = address.ip().is_loopback();
    loop {
        // It is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_AGAIN_AFTER).await;
            continue;
        };
        let metrics = metrics.clone();
        tokio::spawn(async move {
            let answer = service_fn(|request: Request<Incoming>| {
                let metrics = metrics.clone();
                async move {
                    let refused = refusal(&request, only_here);
                    Ok::<_, Infallible>(match refused {
                        Some((status, why)) => said(status, why.into()),
                        None => said(StatusCode::OK, metrics.render().into()),
                    })
                }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_WITHIN)
                .serve_connection(TokioIo::new(stream), answer);
            // Malformed requests are closed without an answer.
            let _ = timeout(CONNECTION_FOR, connection).await;
            drop(place);
        });
    }
}

/// The reason why a request is not answered. A web page can make any name lead to this host, and
/// would read what only this host may read.
fn refusal<B>(request: &Request<B>, only_here: bool) -> Option<(StatusCode, &'static str)> {
    if only_here && !names_this_host(request.headers()) {
        let why = "ask by an address, or by localhost\n";
        return Some((StatusCode::MISDIRECTED_REQUEST, why));
    }
    match (request.uri().path(), request.method()) {
        ("/metrics", &Method::GET) => None,
        ("/metrics", _) => Some((StatusCode::METHOD_NOT_ALLOWED, "only GET\n")),
        _ => Some((StatusCode::NOT_FOUND, "the metrics are at /metrics\n")),
    }
}

fn names_this_host(headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let Some(host) = host else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|letter| letter.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || address.parse::<IpAddr>().is_ok()
}

fn said(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let text = header::HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

async fn upkeep(metrics: MetricsHandle) {
    let mut tick = interval(UPKEEP_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        metrics.upkeep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metrics_are_at_an_address_or_off() {
        assert_eq!("off".parse(), Ok(MetricsAt::Off));
        let address = SocketAddr::from(([127, 0, 0, 1], 9465));
        assert_eq!("127.0.0.1:9465".parse(), Ok(MetricsAt::Address(address)));
        for wrong in ["", "on", "9465", "localhost"] {
            let refused = wrong.parse::<MetricsAt>();
            assert!(
                refused.is_err_and(|why| why.contains("127.0.0.1:9465")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn no_name_but_localhost_leads_to_metrics_that_only_this_host_may_read() {
        let asked = |host: &str, only_here| {
            let request = Request::get("/metrics").header(header::HOST, host);
            refusal(&request.body(()).expect("a request"), only_here)
        };
        for own in [
            "127.0.0.1:9465",
            "localhost:9465",
            "[::1]:9465",
            "localhost",
        ] {
            assert_eq!(asked(own, true), None, "{own}");
        }
        for foreign in ["evil.example:9465", "localhost.evil.example", ""] {
            let refused = asked(foreign, true).map(|(status, _)| status);
            assert_eq!(refused, Some(StatusCode::MISDIRECTED_REQUEST), "{foreign}");
        }
        assert_eq!(asked("runner.internal:9465", false), None);
        let elsewhere = Request::get("/").header(header::HOST, "127.0.0.1");
        let refused = refusal(&elsewhere.body(()).expect("a request"), true);
        assert_eq!(
            refused.map(|(status, _)| status),
            Some(StatusCode::NOT_FOUND)
        );
    }
}
