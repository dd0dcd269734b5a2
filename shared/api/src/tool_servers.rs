//! The messages about sign-ins to tool servers.

use serde::{Deserialize, Serialize};
use shared_types::{ExtensionId, SessionId, Timestamp, event::Layer};

/// The state of the caller's sign-in to a tool server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ToolServerSignIn {
    /// The server has not asked for one.
    None,
    /// The server wants one: it has refused a request.
    Needed,
    /// The caller has signed in.
    SignedIn,
}

messages! {
    /// A tool server that is registered. The values of its variables and headers are not shown.
    pub struct ListedToolServer {
        /// The id of its extension.
        pub id: ExtensionId,
        /// Its name.
        pub name: String,
        /// Its layer: `tenant` for all people, or `user`.
        pub layer: Layer,
        /// Its address; absent of a program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub url: Option<String>,
        /// Its command, on one line; absent of an address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub command: Option<String>,
        /// The names of the variables that it is given.
        pub env: Vec<String>,
        /// The names of the headers with which it is asked.
        pub headers: Vec<String>,
        /// The caller's sign-in.
        pub sign_in: ToolServerSignIn,
        /// The authorization server at which the caller has signed in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub issuer: Option<String>,
        /// The rights that the caller has given Gantry there.
        pub scopes: Vec<String>,
        /// The time of the sign-in, or of its last renewal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub since: Option<Timestamp>,
    }

    /// The tool servers that are registered for the caller.
    pub struct ToolServers {
        /// The tenant's, then the caller's own.
        pub tool_servers: Vec<ListedToolServer>,
    }

    /// A tool server of the caller.
    #[serde(deny_unknown_fields)]
    pub struct NamedToolServer {
        /// Its name.
        pub server: String,
        /// A session that found it in its project; where the caller and the tenant have registered none of this name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub session: Option<SessionId>,
    }

    /// A sign-in that waits for the caller's browser.
    pub struct ToolServerSigningIn {
        /// The address that the caller opens in a browser.
        pub url: String,
        /// The authorization server.
        pub issuer: String,
        /// The end of the time in which the caller signs in.
        pub ends_at: Timestamp,
    }

    /// The address at which the caller's browser came back.
    #[serde(deny_unknown_fields)]
    pub struct ToolServerAnswer {
        /// The whole address, with its query.
        pub address: String,
    }

    /// A value of the caller that stands for `${NAME}` in addresses and headers of tool servers. It is not shown.
    pub struct ToolValue {
        /// Its name.
        pub name: String,
        /// The host to which it may be sent, with its port where the address has one.
        pub host: String,
        /// The time at which it was set.
        pub since: Timestamp,
    }

    /// The caller's values for tool servers.
    pub struct ToolValues {
        /// By their names.
        pub values: Vec<ToolValue>,
    }

    /// A value that is to be set or removed.
    #[serde(deny_unknown_fields)]
    pub struct PutToolValue {
        /// Its name: letters, digits and `_`, at most 64.
        pub name: String,
        /// The host to which it may be sent, with its port where the address has one, or an address; absent to remove it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub host: Option<String>,
        /// The value, at most 8 KiB; absent to remove it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub value: Option<String>,
    }

    /// A sign-in that has succeeded.
    pub struct ToolServerSignedIn {
        /// The name of the tool server.
        pub server: String,
    }
}
