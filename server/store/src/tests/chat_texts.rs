//! Searches over the texts of a user's sessions.

use server_records::{ChatHit, ChatQuery, ChatSpeaker};
use shared_types::{
    Event, SessionId,
    event::{Finish, Parts, TurnOutcome, Usage},
};

use super::{
    fixture::{Fixture, Tenant, at, turn_ended, unique},
    rights::invited,
};
use crate::{NewSession, Role, StoreError};

on_every_backend!(
    history_finds_messages_and_answers_in_the_other_sessions_of_the_owner_alone,
    history_takes_any_query,
    history_forgets_a_deleted_session,
);

async fn search(ours: &Tenant, from: SessionId, words: &str) -> Vec<ChatHit> {
    search_in(ours, from, words, None).await
}

async fn search_in(
    ours: &Tenant,
    from: SessionId,
    words: &str,
    within: Option<SessionId>,
) -> Vec<ChatHit> {
    let query = ChatQuery {
        words: words.to_owned(),
        at_most: 10,
        within,
    };
    let found = ours.db.search_chats(ours.id, from, &query).await;
    found.expect("it answers")
}

/// A turn in this session, with its answer.
async fn talk(ours: &Tenant, session: SessionId, message: &str, answer: &str, now: i64) {
    ours.send(session, message).await;
    let claimed = ours.claim(session).await;
    let answered = Event::AnswerRecorded {
        turn: claimed.turn.id,
        step: 1,
        model: "m".to_owned(),
        origin: None,
        parts: Parts::text(answer),
        finish: Finish::Complete,
        usage: Usage::default(),
        estimated: 0,
        model_ms: 0,
        limit: None,
    };
    let events = [
        answered,
        turn_ended(claimed.turn.id, TurnOutcome::Completed),
    ];
    let appended = (ours.db).append(ours.id, session, claimed.epoch, &events, at(now));
    appended.await.expect("the turn runs");
}

async fn history_finds_messages_and_answers_in_the_other_sessions_of_the_owner_alone(
    fixture: Fixture,
) {
    let (ours, theirs) = (fixture.tenant().await, fixture.tenant().await);
    let (old, new, here) = (
        ours.session().await,
        ours.session().await,
        ours.session().await,
    );
    talk(
        &ours,
        old,
        "Wie groß ist der Ärger?",
        "Der Lagerplatz ist 数据库 7.",
        5,
    )
    .await;
    talk(&ours, new, "use max_steps", "The lagerplatz IS new.", 6).await;
    talk(&ours, here, "lagerplatz", "here", 7).await;
    let foreign = theirs.session().await;
    talk(&theirs, foreign, "lagerplatz", "theirs", 8).await;

    let hits = search(&ours, here, "Lager  PLATZ").await;
    assert_eq!(hits, [], "platz begins no word");
    let hits = search(&ours, here, "LAGER ist").await;
    let [hit] = &hits[..] else { panic!("{hits:?}") };
    assert_eq!(
        (hit.session, hit.at, hit.speaker),
        (old, at(5), ChatSpeaker::Model)
    );
    assert_eq!(hit.excerpt, "Der Lagerplatz ist 数据库 7.");
    let sessions = |hits: Vec<ChatHit>| hits.iter().map(|hit| hit.session).collect::<Vec<_>>();
    assert_eq!(
        sessions(search(&ours, here, "lagerplatz").await),
        [new, old]
    );
    assert_eq!(
        sessions(search_in(&ours, here, "lagerplatz", Some(old)).await),
        [old]
    );
    assert_eq!(
        sessions(search_in(&ours, here, "lagerplatz", Some(here)).await),
        [here]
    );
    for foreign in [foreign, SessionId::from_u128(unique())] {
        assert_eq!(
            search_in(&ours, here, "lagerplatz", Some(foreign)).await,
            []
        );
    }
    for words in ["ärger", "GROß", "max_steps", "数据", "据库", "用户 use"] {
        let found = search(&ours, here, words).await;
        assert_eq!(found.len(), usize::from(!words.contains('用')), "{words}");
    }

    let other = invited(&ours, "other", Role::Member).await;
    let session = NewSession {
        id: SessionId::from_u128(unique()),
        user: other,
        title: String::new(),
        model: "practice".to_owned(),
        chosen_model: None,
        pin: None,
        directory: String::new(),
    };
    let created = ours.db.create_session(ours.id, &session, u64::MAX, at(1));
    let theirs = created.await.expect("the user is there").id;
    assert_eq!(search(&ours, theirs, "lagerplatz").await, []);
    assert_eq!(search_in(&ours, theirs, "lagerplatz", Some(old)).await, []);
}

async fn history_takes_any_query(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (session, here) = (ours.session().await, ours.session().await);
    talk(&ours, session, "AND 'quoted' 100% of_it", "\0 NEAR(x)", 5).await;
    let long = "word ".repeat(2000) + &"x".repeat(10_000);
    for words in ["", " ", "'", "\"", "*", "%", "_", "\\", "\0", ")(", &long] {
        assert_eq!(search(&ours, here, words).await, [], "{words:?}");
    }
    for words in [
        "AND",
        "'quoted'",
        "\"quoted\"",
        "and*",
        "100%",
        "%100",
        "of_it",
        "NEAR(",
        "\0near",
    ] {
        assert_eq!(search(&ours, here, words).await.len(), 1, "{words:?}");
    }
    let long = "b".repeat(100_000);
    talk(
        &ours,
        session,
        &format!("{}needle", "a ".repeat(16 * 1024)),
        &long,
        6,
    )
    .await;
    assert_eq!(
        search(&ours, here, "needle").await,
        [],
        "only the beginning is searched"
    );
    assert_eq!(search(&ours, here, "bbb").await.len(), 1);
    let many = ChatQuery {
        words: "a".to_owned(),
        at_most: u32::MAX,
        within: None,
    };
    let found = ours.db.search_chats(ours.id, here, &many).await;
    assert!(found.expect("it answers").len() <= 20);
}

async fn history_forgets_a_deleted_session(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (session, here) = (ours.session().await, ours.session().await);
    talk(&ours, session, "the secret plan", "understood", 5).await;
    assert_eq!(search(&ours, here, "secret").await.len(), 1);
    let by = ours.owner.into();
    let deleted = ours.db.delete_session(ours.id, session, &by, at(6)).await;
    deleted.expect("it is there");
    assert_eq!(search(&ours, here, "secret").await, []);
    assert_eq!(search_in(&ours, here, "secret", Some(session)).await, []);
    assert!(
        ours.db
            .purge_session(ours.id, session)
            .await
            .expect("it is deleted")
    );
    let mut connection = ours.db.read_any("a test").await.expect("it answers");
    let left = crate::database::query("SELECT seq FROM chat_texts WHERE session_id = $1")
        .bind(session.to_string())
        .fetch_all(&mut connection)
        .await;
    assert_eq!(left.expect("it answers").len(), 0);
    drop(connection);
    let query = ChatQuery {
        words: "secret".to_owned(),
        at_most: 1,
        within: None,
    };
    let gone = ours.db.search_chats(ours.id, session, &query).await;
    assert!(matches!(gone, Err(StoreError::NotFound)), "{gone:?}");
}
