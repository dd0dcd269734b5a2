//! The client of the Model Context Protocol, for tool servers that people bring.
//!
//! A tool server is a stranger: each of its messages is bounded before it is read, and all of its words are data. The
//! client speaks both eras of the protocol: up to 2025-11-25 a connection begins with a handshake, and from 2026-07-28
//! on each request says all of it. This crate knows no tenants, sessions or runners. Its caller gives it a pipe to a
//! program ([`Pipe`]) or an address of the web.
//!
//! - `bounds`: the limits, each with its name.
//! - `message`: the messages of JSON-RPC.
//! - `era`: the versions of the protocol, and the parts of a request that depend on them.
//! - `pipe`: a connection over a program's standard input and output.
//! - `http`: a connection over streamable HTTP.
//! - `sign_in`: the sign-in to a server of the web, in a person's name.
//! - `client`: the requests.
//! - `tool`, `schema`, `names`, `headers`: the tools of a server, checked.
//! - `content`: the results of a call.
//! - `elicit`: the questions of a server to a person.

mod bounds;
mod client;
mod content;
mod elicit;
mod era;
mod error;
mod headers;
mod http;
mod message;
mod names;
mod pipe;
mod schema;
pub mod sign_in;
mod tool;

pub use self::{
    bounds::{
        CALL_AT_MOST, CALL_USUALLY, MAX_DESCRIPTION_BYTES, MAX_MESSAGE_BYTES, MAX_SCHEMA_BYTES,
        MAX_SCHEMA_LEVELS, MAX_TOOLS, START_AT_MOST, START_USUALLY,
    },
    client::{Client, Options, Way},
    content::{Content, Image},
    elicit::{ElicitAnswer, Elicitation, Field, NobodyThere, Person, Wants},
    era::Era,
    error::McpError,
    http::Remote,
    names::{MAX_NAME_BYTES, PREFIX, model_names},
    pipe::{Pipe, PipeReader, PipeWriter},
    tool::{Annotations, Prompt, PromptArgument, Resource, Tool, Tools},
};
