//! The exact bytes that are signed at enrolment and connect, and those that go into the keys of a
//! seal. Each kind starts with its own domain, so that a signature made for one can never stand for
//! another.

use shared_types::{Digest, RunnerId};

use crate::v1;

/// The message that the server's identity key signs in `IdentifyReply`: the whole reply, for this nonce.
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

/// The message that the runner's key signs in `EnrolContent`; `join_token` is the token's text.
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

/// The message that the runner's key signs in `AuthenticateRequest`.
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

/// The message that the server's identity key signs in `AuthenticateReply`: the whole reply, for this challenge.
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

/// The message that the server's identity key signs for a join state.
pub fn join_state(runner: RunnerId, join_state: u64) -> Vec<u8> {
    message(
        "gantry.join-state.v1",
        &[runner.to_string().as_bytes(), &join_state.to_be_bytes()],
    )
}

/// The message that the server's identity key signs if it refuses `Authenticate` because it has dismissed the runner.
/// The signature goes with the status, see [`crate::dismissal`].
pub fn dismissed(challenge: &[u8], runner: RunnerId) -> Vec<u8> {
    message(
        "gantry.dismissed.v1",
        &[challenge, runner.to_string().as_bytes()],
    )
}

/// The message that the server's identity key signs in `Challenge`: the whole challenge, for the bearer of this token.
pub fn challenge(access_token: &str, challenge: &v1::Challenge) -> Vec<u8> {
    let token = Digest::of(access_token.as_bytes());
    message(
        "gantry.challenge.v3",
        &[&challenge.nonce, token.as_bytes(), &challenge.ephemeral_key],
    )
}

/// The message that the runner's key signs in `Proof`: the whole proof, for this challenge. Its hello is sealed under a
/// key made of the two ephemeral keys.
pub fn proof(access_token: &str, challenge: &v1::Challenge, proof: &v1::Proof) -> Vec<u8> {
    let token = Digest::of(access_token.as_bytes());
    message(
        "gantry.proof.v3",
        &[
            &challenge.nonce,
            token.as_bytes(),
            &proof.ephemeral_key,
            &challenge.ephemeral_key,
            &proof.protocol_version.to_be_bytes(),
        ],
    )
}

/// The infos from which HKDF makes the keys of a link: the runner's, and the server's. The salt of both
/// is the challenge's nonce.
pub fn seal_keys(runner: RunnerId, runners_key: &[u8], servers_key: &[u8]) -> [Vec<u8>; 2] {
    let runner = runner.to_string();
    ["gantry.seal.from-runner.v3", "gantry.seal.from-server.v3"]
        .map(|domain| message(domain, &[runner.as_bytes(), runners_key, servers_key]))
}

/// The message that the server's identity key signs for a runner's programs: this is the archive for this kind of
/// machine, for a runner that asks with this nonce.
pub fn programs(nonce: &[u8], arch: &str, archive: &Digest) -> Vec<u8> {
    message(
        "gantry.programs.v1",
        &[nonce, arch.as_bytes(), archive.as_bytes()],
    )
}

/// The domain, a zero byte, and each part behind its length (u32, big endian).
fn message(domain: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = domain.as_bytes().to_vec();
    bytes.push(0);
    for part in parts {
        bytes.extend((part.len() as u32).to_be_bytes());
        bytes.extend(*part);
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
        assert_ne!(
            join_state(RunnerId::from_u128(1), 1),
            dismissed(&[], RunnerId::from_u128(1))
        );
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
    fn challenge_and_proof_are_signed_with_all_that_they_say() {
        let said = v1::Challenge::default();
        let signed = challenge("token", &said);
        let changes: [fn(&mut v1::Challenge); 2] = [
            |challenge| challenge.nonce.push(1),
            |challenge| challenge.ephemeral_key.push(1),
        ];
        let proved = proof("token", &said, &v1::Proof::default());
        for change in changes {
            let mut changed = said.clone();
            change(&mut changed);
            assert_ne!(challenge("token", &changed), signed, "{changed:?}");
            let answered = proof("token", &changed, &v1::Proof::default());
            assert_ne!(answered, proved, "{changed:?}");
        }
        assert_ne!(challenge("another", &said), signed);
        assert_ne!(proof("another", &said, &v1::Proof::default()), proved);
        let changes: [fn(&mut v1::Proof); 2] = [
            |proof| proof.ephemeral_key.push(1),
            |proof| proof.protocol_version += 1,
        ];
        for change in changes {
            let mut changed = v1::Proof::default();
            change(&mut changed);
            assert_ne!(proof("token", &said, &changed), proved, "{changed:?}");
        }
    }
}
