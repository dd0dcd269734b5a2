//! A server whose database was restored from an older copy.

use super::*;

impl Peer {
    /// A request in which everything is right, with what the server gave last.
    pub(super) fn shows(
        &self,
        fixture: &Fixture,
        given: &v1::AuthenticateReply,
    ) -> AuthenticateRequest {
        AuthenticateRequest {
            join_state_signature: given.join_state_signature.clone(),
            ..self.signed(fixture, given.join_state)
        }
    }
}

/// Connects: what is given then, once a link has used it.
async fn linked(
    fixture: &Fixture,
    ask: &AuthenticateRequest,
) -> Result<v1::AuthenticateReply, NotLetIn> {
    let enrolment = &fixture.app.enrolment;
    let given = enrolment.authenticate(ask).await?;
    let claims = enrolment.check_link_token(&given.access_token);
    let claims = claims.expect("it is ours");
    let store = &fixture.app.store;
    let used = store.use_join_state(claims.tenant, claims.runner, claims.join_state);
    assert!(used.await.expect("it answers"));
    Ok(given)
}

/// Connects with what was given last, so many times; returns what was given each time.
async fn connects(
    fixture: &Fixture,
    peer: &Peer,
    newest: &v1::AuthenticateReply,
    times: usize,
) -> Vec<v1::AuthenticateReply> {
    let mut given = vec![newest.clone()];
    for _ in 0..times {
        let next = linked(fixture, &peer.shows(fixture, &given[given.len() - 1])).await;
        given.push(next.expect("it is let in"));
    }
    given
}

/// A runner that has connected once, and the copy of the database from then.
async fn beginning() -> (Fixture, Peer, v1::AuthenticateReply, crate::testing::Copy) {
    let fixture = Fixture::practice().await;
    let peer = Peer::enrol(&fixture).await;
    let given = linked(&fixture, &peer.signed(&fixture, 0)).await;
    let (fixture, copy) = fixture.copied().await;
    (fixture, peer, given.expect("it is let in"), copy)
}

#[tokio::test]
async fn runners_that_connected_since_are_let_in_and_the_operator_is_told() {
    let (fixture, peer, first, copy) = beginning().await;
    let given = connects(&fixture, &peer, &first, 3).await;
    let fixture = copy.start().await;
    let next = linked(&fixture, &peer.shows(&fixture, &given[3])).await;
    assert_eq!(next.expect("it is let in").join_state, 5);
    let runners = fixture.app.runners.list(&fixture.ctx, "", 10).await;
    let runner = &runners.expect("a list").0[0];
    assert!(!runner.locked && runner.server_went_back.is_some());
    let audit = fixture.app.store.audit_after(fixture.ctx.tenant, 0, 1000);
    let audit = audit.await.expect("it answers");
    let told = audit.iter().filter(|row| row.kind == "server.went_back");
    assert_eq!(told.count(), 1);
}

#[tokio::test]
async fn a_copy_of_a_runners_folder_is_still_found() {
    let (fixture, peer, first, copy) = beginning().await;
    let given = connects(&fixture, &peer, &first, 3).await;
    let fixture = copy.start().await;
    // The copied folder comes first, and is taken for the runner; it cannot show more than it was
    // given.
    let copied = linked(&fixture, &peer.shows(&fixture, &given[1])).await;
    let copied = copied.expect("it is let in");
    connects(&fixture, &peer, &given[3], 1).await;
    let refused = linked(&fixture, &peer.shows(&fixture, &copied)).await;
    let refused = refused.expect_err("a copy");
    assert!(refused.dismissal.is_some(), "{refused:?}");
}

#[tokio::test]
async fn a_newer_state_that_the_server_did_not_sign_locks_nothing() {
    let (fixture, peer, first, _copy) = beginning().await;
    let forged = AuthenticateRequest {
        join_state_signature: first.join_state_signature.clone(),
        ..peer.signed(&fixture, first.join_state + 5)
    };
    let refused = linked(&fixture, &forged).await.expect_err("never given");
    assert_eq!(refused.dismissal, None);
    connects(&fixture, &peer, &first, 1).await;
}
