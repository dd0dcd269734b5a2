//! The exact bytes that are signed at enrolment and connect, and those behind the tickets of a
//! link. Each kind starts with its own domain, so that a signature made for one can never stand
//! for another.

use shared_types::{Digest, RunnerId};

use crate::v1::{self, server_frame};

/// What the server's identity key signs in `IdentifyReply`: all of it, for this nonce.
pub fn identify(nonce: &[u8], reply: &v1::IdentifyReply) -> Vec<u8> {
    message(
        "gantry.identify.v2",
        &[
            nonce,
            &reply.challenge,
            &reply.certificate_sha256,
            reply.audience.as_bytes(),
            &reply.sealing_key,
        ],
    )
}

/// What the runner's key signs in `EnrolContent`; `join_token` is the token's text.
pub fn enrol(challenge: &[u8], ephemeral_key: &[u8], join_token: &str) -> Vec<u8> {
    let token = Digest::of(join_token.as_bytes());
    message(
        "gantry.enrol.v2",
        &[challenge, ephemeral_key, token.as_bytes()],
    )
}

/// The infos from which HKDF makes the keys that seal an enrolment: of the request, and of the reply.
/// The salt of both is the challenge.
pub fn enrol_keys(runners_key: &[u8], servers_key: &[u8]) -> [Vec<u8>; 2] {
    ["gantry.enrol-request.v2", "gantry.enrol-reply.v2"]
        .map(|domain| message(domain, &[runners_key, servers_key]))
}

/// What the runner's key signs in `AuthenticateRequest`.
pub fn authenticate(
    challenge: &[u8],
    audience: &str,
    runner: RunnerId,
    join_state: u64,
) -> Vec<u8> {
    message(
        "gantry.authenticate.v1",
        &[
            challenge,
            audience.as_bytes(),
            runner.to_string().as_bytes(),
            &join_state.to_be_bytes(),
        ],
    )
}

/// What the server's identity key signs in `AuthenticateReply`: all of it, in answer to this challenge.
pub fn authenticated(challenge: &[u8], runner: RunnerId, reply: &v1::AuthenticateReply) -> Vec<u8> {
    message(
        "gantry.authenticated.v1",
        &[
            challenge,
            runner.to_string().as_bytes(),
            Digest::of(reply.access_token.as_bytes()).as_bytes(),
            &reply.expires_in_s.to_be_bytes(),
            &reply.join_state.to_be_bytes(),
            &reply.join_state_signature,
        ],
    )
}

/// What the server's identity key signs of a join state that it gives.
pub fn join_state(runner: RunnerId, join_state: u64) -> Vec<u8> {
    message(
        "gantry.join-state.v1",
        &[runner.to_string().as_bytes(), &join_state.to_be_bytes()],
    )
}

/// What the server's identity key signs where it refuses `Authenticate` because it has dismissed the
/// runner; the signature goes with the status, see [`crate::dismissal`].
pub fn dismissed(challenge: &[u8], runner: RunnerId) -> Vec<u8> {
    message(
        "gantry.dismissed.v1",
        &[challenge, runner.to_string().as_bytes()],
    )
}

/// What the runner's key signs in `Hello`: all of it, for this link.
pub fn link(nonce: &[u8], access_token: &str, hello: &v1::Hello) -> Vec<u8> {
    let incarnation = hello.incarnation.clone().unwrap_or_default();
    let capabilities = hello.capabilities.clone().unwrap_or_default();
    let sandboxes = capabilities.sandboxes.iter().flat_map(|sandbox| {
        [
            sandbox.sandbox.as_bytes(),
            sandbox.name.as_bytes(),
            sandbox.root.as_bytes(),
            sandbox.isolation.as_bytes(),
        ]
    });
    let inventory = hello.inventory.iter().flat_map(|entry| {
        let ended: &[u8] = if entry.ended { &[1] } else { &[0] };
        [entry.operation.as_bytes(), ended]
    });
    message(
        "gantry.link.v3",
        &[
            nonce,
            Digest::of(access_token.as_bytes()).as_bytes(),
            &hello.ephemeral_key,
            &hello.protocol_version.to_be_bytes(),
            hello.software_version.as_bytes(),
            incarnation.journal.as_bytes(),
            incarnation.boot.as_bytes(),
            &hello.journal_sequence.to_be_bytes(),
            capabilities.os.as_bytes(),
            capabilities.architecture.as_bytes(),
            capabilities.hostname.as_bytes(),
            &list(sandboxes),
            &list(capabilities.features.iter().map(String::as_bytes)),
            &list(inventory),
        ],
    )
}

/// What the server's identity key signs in `Welcome`: all of it, for this link.
pub fn welcome(
    nonce: &[u8],
    runner: RunnerId,
    runners_key: &[u8],
    welcome: &v1::Welcome,
) -> Vec<u8> {
    message(
        "gantry.welcome.v2",
        &[
            nonce,
            &welcome.generation.to_be_bytes(),
            runner.to_string().as_bytes(),
            runners_key,
            &welcome.ephemeral_key,
            &welcome.protocol_version.to_be_bytes(),
            &welcome.heartbeat_every_ms.to_be_bytes(),
            &welcome.silence_ms.to_be_bytes(),
        ],
    )
}

/// The info from which HKDF makes the key of a link; its salt is the nonce.
pub fn link_key(
    generation: u64,
    runner: RunnerId,
    runners_key: &[u8],
    servers_key: &[u8],
) -> Vec<u8> {
    message(
        "gantry.link-key.v1",
        &[
            &generation.to_be_bytes(),
            runner.to_string().as_bytes(),
            runners_key,
            servers_key,
        ],
    )
}

/// The info from which HKDF makes the key that a link's runner seals its frames with; its salt is the
/// nonce.
pub fn seal_key(runner: RunnerId, runners_key: &[u8], servers_key: &[u8]) -> Vec<u8> {
    message(
        "gantry.seal-key.v1",
        &[runner.to_string().as_bytes(), runners_key, servers_key],
    )
}

/// What is authenticated under the link's key in `Ticket`: this operation, on this link.
pub fn ticket(
    nonce: &[u8],
    generation: u64,
    runner: RunnerId,
    issued_ms: u64,
    operation: &v1::Operation,
) -> Vec<u8> {
    let incarnation = operation.incarnation.clone().unwrap_or_default();
    message(
        "gantry.ticket.v1",
        &[
            nonce,
            &generation.to_be_bytes(),
            runner.to_string().as_bytes(),
            &issued_ms.to_be_bytes(),
            operation.operation.as_bytes(),
            &operation.digest,
            operation.sandbox.as_bytes(),
            operation.owner.as_bytes(),
            &operation.epoch.to_be_bytes(),
            incarnation.journal.as_bytes(),
            incarnation.boot.as_bytes(),
            &operation.start_within_ms.to_be_bytes(),
            &operation.run_for_ms.to_be_bytes(),
            &operation.stdout_from.to_be_bytes(),
            &operation.stderr_from.to_be_bytes(),
        ],
    )
}

/// What is authenticated under the link's key in the ticket of a frame that is no operation: this
/// order, on this link. Nothing for frames that change nothing on the runner.
pub fn order(
    nonce: &[u8],
    generation: u64,
    runner: RunnerId,
    issued_ms: u64,
    kind: &server_frame::Kind,
) -> Option<Vec<u8>> {
    let (tag, fields) = fields(kind)?;
    let (generation, runner) = (generation.to_be_bytes(), runner.to_string());
    let (issued, tag) = (issued_ms.to_be_bytes(), tag.to_be_bytes());
    let link: [&[u8]; 5] = [nonce, &generation, runner.as_bytes(), &issued, &tag];
    let fields = fields.iter().map(Vec::as_slice);
    let parts: Vec<&[u8]> = link.into_iter().chain(fields).collect();
    Some(message("gantry.order.v1", &parts))
}

/// The number of the field in `ServerFrame`, and what the order says.
fn fields(kind: &server_frame::Kind) -> Option<(u64, Vec<Vec<u8>>)> {
    use server_frame::Kind;
    let text = |text: &str| text.as_bytes().to_vec();
    let number = |number: u64| number.to_be_bytes().to_vec();
    let signed = |number: i32| i64::from(number).to_be_bytes().to_vec();
    Some(match kind {
        Kind::Commit(commit) => (
            5,
            vec![
                text(&commit.operation),
                signed(commit.stream),
                number(commit.up_to),
            ],
        ),
        Kind::Cancel(cancel) => {
            let incarnation = cancel.incarnation.clone().unwrap_or_default();
            (
                6,
                vec![
                    text(&cancel.operation),
                    text(&cancel.owner),
                    number(cancel.epoch),
                    text(&incarnation.journal),
                    text(&incarnation.boot),
                ],
            )
        }
        Kind::Forget(forget) => (7, vec![text(&forget.operation)]),
        Kind::Input(input) => (
            11,
            vec![
                text(&input.operation),
                number(input.offset),
                input.data.to_vec(),
                number(input.end.into()),
            ],
        ),
        Kind::Resize(resize) => {
            let size = resize.size.unwrap_or_default();
            (
                12,
                vec![
                    text(&resize.operation),
                    number(resize.id),
                    number(size.rows.into()),
                    number(size.columns.into()),
                ],
            )
        }
        Kind::Signal(signal) => (
            13,
            vec![
                text(&signal.operation),
                number(signal.id),
                signed(signal.kind),
            ],
        ),
        // They open or end the link, say that it lives, or have a signature or ticket of their own;
        // credit only lets flow what was asked for, and an upload's ticket has the digest of what its
        // pieces must make up.
        Kind::Challenge(_)
        | Kind::Welcome(_)
        | Kind::NewJournal(_)
        | Kind::Operation(_)
        | Kind::Credit(_)
        | Kind::Piece(_)
        | Kind::Heartbeat(_)
        | Kind::Goodbye(_) => return None,
    })
}

/// What the server's identity key signs in `NewJournal`.
pub fn new_journal(nonce: &[u8], runner: RunnerId) -> Vec<u8> {
    message(
        "gantry.new-journal.v1",
        &[nonce, runner.to_string().as_bytes()],
    )
}

/// The domain, a zero byte, and each part behind its length.
fn message(domain: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = domain.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend(list(parts.iter().copied()));
    bytes
}

/// Each part behind its length (u32, big endian).
fn list<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend((part.len() as u32).to_be_bytes());
        bytes.extend(part);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_lists_of_parts_give_the_same_bytes() {
        let challenged = |challenge: &[u8]| v1::IdentifyReply {
            challenge: challenge.to_vec(),
            ..v1::IdentifyReply::default()
        };
        assert_ne!(
            identify(b"ab", &challenged(b"c")),
            identify(b"a", &challenged(b"bc"))
        );
        let with = |key: &[u8]| v1::Hello {
            ephemeral_key: key.to_vec(),
            ..v1::Hello::default()
        };
        assert_ne!(link(&[0; 32], "t", &with(b"")), enrol(&[0; 32], b"", "t"));
        assert_ne!(link(b"", "t", &with(b"key")), link(b"", "t", &with(b"yek")));
    }

    #[test]
    fn an_answer_that_lets_a_runner_in_is_signed_with_all_that_it_says() {
        let runner = RunnerId::from_u128(1);
        let changes: [fn(&mut v1::AuthenticateReply); 4] = [
            |reply| reply.access_token.push('1'),
            |reply| reply.expires_in_s += 1,
            |reply| reply.join_state += 1,
            |reply| reply.join_state_signature.push(1),
        ];
        let reply = v1::AuthenticateReply::default();
        let signed = authenticated(b"challenge", runner, &reply);
        for (number, change) in changes.iter().enumerate() {
            let mut changed = reply.clone();
            change(&mut changed);
            let changed = authenticated(b"challenge", runner, &changed);
            assert_ne!(changed, signed, "change {number}");
        }
        assert_ne!(authenticated(b"another", runner, &reply), signed);
        assert_ne!(
            authenticated(b"challenge", RunnerId::from_u128(2), &reply),
            signed
        );
    }

    #[test]
    fn a_hello_is_signed_with_all_that_it_says() {
        let hello = v1::Hello {
            capabilities: Some(v1::Capabilities {
                sandboxes: vec![v1::Sandbox::default()],
                ..v1::Capabilities::default()
            }),
            inventory: vec![v1::InventoryEntry::default()],
            ..v1::Hello::default()
        };
        fn capabilities(hello: &mut v1::Hello) -> &mut v1::Capabilities {
            hello.capabilities.as_mut().expect("it has some")
        }
        let changes: [fn(&mut v1::Hello); 17] = [
            |hello| hello.ephemeral_key.push(1),
            |hello| hello.protocol_version += 1,
            |hello| hello.software_version.push('1'),
            |hello| hello.incarnation.get_or_insert_default().journal.push('1'),
            |hello| hello.incarnation.get_or_insert_default().boot.push('1'),
            |hello| hello.journal_sequence += 1,
            |hello| capabilities(hello).os.push('1'),
            |hello| capabilities(hello).architecture.push('1'),
            |hello| capabilities(hello).hostname.push('1'),
            |hello| capabilities(hello).sandboxes[0].sandbox.push('1'),
            |hello| capabilities(hello).sandboxes[0].name.push('1'),
            |hello| capabilities(hello).sandboxes[0].root.push('1'),
            |hello| capabilities(hello).sandboxes[0].isolation.push('1'),
            |hello| capabilities(hello).features.push(String::new()),
            |hello| hello.inventory[0].operation.push('1'),
            |hello| hello.inventory[0].ended = true,
            |hello| hello.inventory.clear(),
        ];
        let signed = link(b"nonce", "t", &hello);
        for (number, change) in changes.iter().enumerate() {
            let mut changed = hello.clone();
            change(&mut changed);
            assert_ne!(link(b"nonce", "t", &changed), signed, "change {number}");
        }
    }
}
