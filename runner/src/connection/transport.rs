//! The transport of the link, and the choice of it.

use clap::ValueEnum;

/// The transport of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// A stream of gRPC, over HTTP/2.
    Grpc,
    /// A WebSocket with the same frames, over HTTP/1.1.
    WebSocket,
}

impl Transport {
    /// The name in logs and options.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::WebSocket => "websocket",
        }
    }
}

/// The transports that a person allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Transports {
    /// gRPC, or a WebSocket where gRPC is blocked
    #[default]
    Auto,
    /// Only gRPC
    Grpc,
    /// Only a WebSocket
    Websocket,
}

/// The transports that one connection may turn out to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// gRPC where the other end agrees to HTTP/2, else a WebSocket.
    Either,
    Only(Transport),
}

impl Transports {
    /// The offer; `websocket` tells that no other transport has passed before.
    pub(crate) fn offer(self, websocket: bool) -> Offer {
        match self {
            Self::Auto if websocket => Offer::Only(Transport::WebSocket),
            Self::Auto => Offer::Either,
            Self::Grpc => Offer::Only(Transport::Grpc),
            Self::Websocket => Offer::Only(Transport::WebSocket),
        }
    }
}

impl Offer {
    /// The names of the protocols (ALPN), the best first.
    pub(super) fn protocols(self) -> Vec<Vec<u8>> {
        let (h2, http1) = (b"h2".to_vec(), b"http/1.1".to_vec());
        match self {
            Self::Either => vec![h2, http1],
            Self::Only(Transport::Grpc) => vec![h2],
            Self::Only(Transport::WebSocket) => vec![http1],
        }
    }

    /// The transport, by the other end's choice.
    pub(super) fn agreed(self, protocol: Option<&[u8]>) -> Transport {
        match (self, protocol) {
            (Self::Only(transport), _) => transport,
            (Self::Either, Some(b"h2")) => Transport::Grpc,
            (Self::Either, _) => Transport::WebSocket,
        }
    }

    /// The transport in plain text, where no choice is offered.
    pub(super) fn without_agreement(self) -> Transport {
        match self {
            Self::Only(transport) => transport,
            Self::Either => Transport::Grpc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http2_is_spoken_only_where_it_was_agreed_on() {
        for (agreed, transport) in [
            (Some(&b"h2"[..]), Transport::Grpc),
            (Some(b"http/1.1"), Transport::WebSocket),
            (None, Transport::WebSocket),
        ] {
            assert_eq!(Offer::Either.agreed(agreed), transport, "{agreed:?}");
        }
    }

    #[test]
    fn what_a_person_demands_is_all_that_is_offered() {
        for (choice, transport) in [
            (Transports::Grpc, Transport::Grpc),
            (Transports::Websocket, Transport::WebSocket),
        ] {
            for before in [false, true] {
                assert_eq!(choice.offer(before), Offer::Only(transport));
            }
        }
        assert_eq!(Transports::Auto.offer(false), Offer::Either);
        let remembered = Offer::Only(Transport::WebSocket);
        assert_eq!(Transports::Auto.offer(true), remembered);
    }
}
