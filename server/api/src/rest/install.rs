//! `/install`: a runner's programs, for machines that have none yet or older ones. They are public and
//! need no key.

use axum::{
    Extension, Json,
    body::Body,
    extract::{
        Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use serde::Deserialize;
use shared_api::SignedArchive;
use shared_types::Digest;

use super::problem::{Code, respond};
use crate::{
    Doors, archives,
    edge::serve::{Peer, network},
};

/// The nonce, by which the caller knows that the answer is new.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NonceQuery {
    /// 64 hexadecimal digits.
    nonce: String,
}

/// The archive for this kind of machine, with the signature of the server's identity.
pub(crate) async fn signed(
    State(doors): State<Doors>,
    arch: Result<Path<String>, PathRejection>,
    asked: Result<Query<NonceQuery>, QueryRejection>,
) -> Response {
    let nonce = asked
        .ok()
        .and_then(|Query(NonceQuery { nonce })| Digest::from_hex(&nonce));
    let Some(nonce) = nonce else {
        return respond(Code::Invalid.problem("send a nonce of 64 hexadecimal digits"));
    };
    let archive = arch.ok().and_then(|Path(arch)| doors.archives.of(&arch));
    let Some(archive) = archive else {
        return respond(Code::NotFound.problem(
            "this server hands out no programs for this kind of machine: copy them there yourself",
        ));
    };
    let enrolment = &doors.app.enrolment;
    let signature = enrolment.vouch_for_programs(nonce.as_bytes(), archive.arch, &archive.sha256);
    let signature = signature.iter().map(|byte| format!("{byte:02x}")).collect();
    Json(SignedArchive {
        archive: archive.told(),
        signature,
    })
    .into_response()
}

/// One archive, by its checksum and its name.
pub(crate) async fn archive(
    State(doors): State<Doors>,
    Extension(Peer(peer)): Extension<Peer>,
    asked: Result<Path<(String, String)>, PathRejection>,
) -> Response {
    let found = asked.ok();
    let found = found.and_then(|Path((sha256, name))| doors.archives.named(&sha256, &name));
    let Some(archive) = found else {
        return respond(Code::NotFound.problem(
            "this server hands out no such archive: ask for the line to paste once more with gantry runners add",
        ));
    };
    let Some(place) = doors.archives.sending.take(network(peer.ip()), 1) else {
        return respond(
            Code::Unavailable.problem("too many machines load programs now: try again"),
        );
    };
    let (file, end) = (archive.file.clone(), archive.bytes);
    let pieces = stream::try_unfold((0, place), move |(offset, place)| {
        let file = file.clone();
        async move {
            if offset == end {
                return Ok(None);
            }
            let read = tokio::task::spawn_blocking(move || archives::piece(&file, offset, end));
            let piece = read.await.map_err(std::io::Error::other)??;
            let next = offset + piece.len() as u64;
            Ok::<_, std::io::Error>(Some((piece, (next, place))))
        }
    });
    let mut response = Body::from_stream(pieces).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(end));
    let media_type = HeaderValue::from_static("application/gzip");
    headers.insert(header::CONTENT_TYPE, media_type);
    response
}
