//! The versions of the protocol, and the parts of a request that depend on them.

use serde_json::{Map, Value, json};

/// The newest version in which a connection begins with a handshake.
pub(crate) const LEGACY: &str = "2025-11-25";

/// The version in which each request says all of it.
pub(crate) const MODERN: &str = "2026-07-28";

/// Versions with a handshake that this client can speak with a server that knows no newer one.
const LEGACY_SPOKEN: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The code of "I do not speak this version".
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// The code of "the headers differ from the body".
pub(crate) const HEADER_MISMATCH: i64 = -32020;

/// The code of "a person has to open an address first".
pub(crate) const WANTS_ADDRESS: i64 = -32042;

/// The code of "this client does not say that it can do that".
const MISSING_CAPABILITY: i64 = -32021;

/// One of the two ways in which the protocol was ever spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// A handshake, then requests in both directions: versions up to 2025-11-25.
    Legacy,
    /// Requests that stand by themselves: 2026-07-28.
    Modern,
}

impl Era {
    /// The version that requests name.
    pub fn version(self) -> &'static str {
        match self {
            Self::Legacy => LEGACY,
            Self::Modern => MODERN,
        }
    }
}

/// The version with a handshake that this client speaks, if it is one.
pub(crate) fn legacy_version(version: &str) -> Option<&'static str> {
    LEGACY_SPOKEN.into_iter().find(|known| *known == version)
}

/// True for an error that only a server of the modern era gives.
pub(crate) fn is_modern_error(code: i64) -> bool {
    matches!(
        code,
        UNSUPPORTED_VERSION | HEADER_MISMATCH | MISSING_CAPABILITY
    )
}

/// The client, as it introduces itself.
pub(crate) fn client_info() -> Value {
    json!({ "name": "gantry", "title": "Gantry", "version": env!("CARGO_PKG_VERSION") })
}

/// The abilities of the client: it has people answer questions, or it has none.
pub(crate) fn capabilities(elicits: bool) -> Value {
    match elicits {
        true => json!({ "elicitation": { "form": {}, "url": {} } }),
        false => json!({}),
    }
}

/// The parameters of a request as this era wants them.
pub(crate) fn params(era: Era, elicits: bool, params: Map<String, Value>) -> Value {
    let mut params = params;
    if era == Era::Modern {
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        meta["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
        meta["io.modelcontextprotocol/clientInfo"] = client_info();
        meta["io.modelcontextprotocol/clientCapabilities"] = capabilities(elicits);
    }
    Value::Object(params)
}
