//! What a server hears of the commits of another one.

use shared_types::{SessionEvent, SessionId, TenantId, Timestamp, event::EventBody};

use server_records::SessionKey;

use super::*;

mod postgres;

const OF: SessionKey = SessionKey {
    tenant: TenantId::from_u128(1),
    session: SessionId::from_u128(2),
};

fn events(seqs: impl IntoIterator<Item = u64>) -> Vec<SessionEvent> {
    let event = |seq| SessionEvent {
        seq,
        at: Timestamp::from_micros(0),
        body: EventBody::Known(shared_types::Event::TurnEnded {
            turn: shared_types::TurnId::from_u128(3),
            outcome: shared_types::event::TurnOutcome::Completed,
            reason: None,
        }),
    };
    seqs.into_iter().map(event).collect()
}

#[test]
fn a_look_tells_of_the_logs_that_others_have_added_to_alone() {
    let seen = SeenLogs::default();
    assert_eq!(seen.grown(vec![(OF, 3)]), [OF], "nothing is known of it");
    assert_eq!(seen.grown(vec![(OF, 3)]), []);
    seen.appended(OF, &events([4, 5]));
    assert_eq!(seen.grown(vec![(OF, 5)]), []);
    assert_eq!(seen.grown(vec![(OF, 6)]), [OF]);
    // Another server's event stands before this one.
    seen.appended(OF, &events([8]));
    assert_eq!(seen.grown(vec![(OF, 8)]), [OF]);
    assert_eq!(seen.grown(vec![(OF, 2)]), [OF], "it was put back");
    assert_eq!(seen.grown(Vec::new()), []);
}

#[test]
fn a_log_is_looked_at_for_as_long_as_it_has_a_follower() {
    let seen = SeenLogs::default();
    let (one, other) = (seen.follow(OF), seen.follow(OF));
    assert_eq!(seen.followed(), [OF]);
    drop(one);
    assert_eq!(seen.followed(), [OF]);
    drop(other);
    assert_eq!(seen.followed(), []);
}
