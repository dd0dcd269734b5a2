use shared_types::{CredentialId, OperationId, RunnerId, SessionId, UserId};

use super::*;

const HERE: ReplicaId = ReplicaId::from_u128(1);

fn session(id: u128) -> Hint {
    Hint::Session(SessionKey {
        tenant: TenantId::from_u128(u128::MAX),
        session: SessionId::from_u128(id),
    })
}

fn batch(hints: impl IntoIterator<Item = Hint>) -> HintBatch {
    HintBatch {
        from: Some(HERE),
        hints: hints.into_iter().collect(),
    }
}

/// Every kind of hint, about every list and everybody.
fn all_kinds() -> HintBatch {
    let tenants = [None, Some(TenantId::from_u128(7))];
    let whose = [
        Whose::Everyone,
        Whose::User(UserId::from_u128(1)),
        Whose::OfSession(SessionId::from_u128(2)),
        Whose::OfOperation(OperationId::from_u128(3)),
        Whose::OfCredential(CredentialId::from_u128(4)),
    ];
    let mut hints = vec![
        Hint::All,
        Hint::Waits,
        Hint::Cancels,
        Hint::Link(RunnerId::from_u128(4)),
        Hint::Replicas,
        session(0),
        session(u128::MAX),
        Hint::Turn(SessionKey {
            tenant: TenantId::from_u128(1),
            session: SessionId::from_u128(2),
        }),
    ];
    hints.extend(tenants.map(Hint::Rights));
    for (tenant, topic) in tenants
        .into_iter()
        .flat_map(|of| Topic::ALL.map(|to| (of, to)))
    {
        for (whose, pace) in whose
            .iter()
            .flat_map(|who| [(who, Pace::Prompt), (who, Pace::Slow)])
        {
            hints.push(Hint::List(Change {
                tenant,
                topic,
                whose: *whose,
                pace,
            }));
        }
    }
    batch(hints)
}

fn read(texts: &[String]) -> BTreeSet<Hint> {
    let read = texts.iter().map(|text| HintBatch::read(text));
    read.flat_map(|batch| batch.hints).collect()
}

#[test]
fn every_hint_is_read_as_it_was_written_and_its_sender_knows_it() {
    let written = all_kinds();
    let texts = written.texts();
    assert_eq!(read(&texts), written.hints);
    for text in texts {
        assert!(HintBatch::read(&text).is_from(HERE));
        assert!(!HintBatch::read(&text).is_from(ReplicaId::from_u128(2)));
    }
    assert_eq!(
        batch([Hint::Waits]).texts(),
        ["1 rep_00000000000000000000000001 waits"]
    );
    assert_eq!(batch([]).texts(), [""; 0]);
}

#[test]
fn many_hints_fill_as_few_texts_as_hold_them() {
    let written = batch((0..1000).map(session));
    let texts = written.texts();
    assert_eq!(read(&texts), written.hints);
    assert!(texts.iter().all(|text| text.len() <= MAX_HINT_TEXT_BYTES));
    let bytes: usize = texts.iter().map(String::len).sum();
    assert_eq!(texts.len(), bytes.div_ceil(MAX_HINT_TEXT_BYTES), "{bytes}");
}

#[test]
fn a_text_of_another_version_means_that_anything_may_be_different() {
    for text in ["2 rep_x waits", "", "waits", "\u{202e}"] {
        let read = HintBatch::read(text);
        assert_eq!(read.hints, BTreeSet::from([Hint::All]), "{text:?}");
        assert!(!read.is_from(HERE));
    }
}

#[test]
fn a_word_that_is_not_known_takes_none_of_the_others_with_it() {
    let of = TenantId::from_u128(7);
    let text = format!(
        "1 {HERE} moon/full session/{of} session/{of}/trn_x list/{of}/moons/*/prompt  rights/x waits/2 waits"
    );
    assert_eq!(HintBatch::read(&text), batch([Hint::Waits]));
    let text = format!("1 {HERE} list/{of}/keys/moon_1/soon");
    let everyone = Hint::List(Change {
        tenant: Some(of),
        topic: Topic::Keys,
        whose: Whose::Everyone,
        pace: Pace::Prompt,
    });
    assert_eq!(HintBatch::read(&text), batch([everyone]));
}
