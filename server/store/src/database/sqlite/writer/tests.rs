use tokio::{sync::oneshot, task::JoinHandle};

use super::run;
use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{Row, Transaction, query},
};

async fn open() -> (Store, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("gantry.db");
    let store = Store::open(&path).await.expect("an empty folder is fine");
    (store, folder)
}

async fn insert(tx: &mut Transaction, number: i64) {
    query("INSERT INTO attempts (kind, address, at) VALUES ('x', 'y', $1)")
        .bind(number)
        .execute(tx)
        .await
        .expect("the database answers");
}

/// What the transaction sees; without one, what is committed.
async fn numbers(store: &Store, tx: Option<&mut Transaction>) -> Vec<i64> {
    let query = query("SELECT at FROM attempts ORDER BY at");
    let found = match tx {
        Some(tx) => query.fetch_all(tx).await,
        None => {
            let reader = store.read_any("a test").await;
            let mut reader = reader.expect("the database answers");
            query.fetch_all(&mut reader).await
        }
    };
    let found = found.expect("the database answers");
    let number = |row: &_| Row::maybe_integer(row, "at").ok().flatten();
    found.iter().filter_map(number).collect()
}

/// Two writers: the first has done its work and waits for its commit, the second is at work.
struct Both {
    store: Store,
    first: JoinHandle<Result<(), StoreError>>,
    second: Transaction,
    _folder: tempfile::TempDir,
}

async fn both() -> Both {
    let (store, folder) = open().await;
    let mut first = store
        .write_any("a test")
        .await
        .expect("the database answers");
    insert(&mut first, 1).await;
    let (stands, standing) = oneshot::channel();
    let second = {
        let store = store.clone();
        tokio::spawn(async move {
            let mut begin = std::pin::pin!(store.write_any("a test"));
            // Polled once, so that it stands in line before the first one joins it again.
            let waits = std::future::poll_fn(|context| {
                std::task::Poll::Ready(begin.as_mut().poll(context).is_pending())
            });
            assert!(waits.await, "the first one has its turn");
            stands.send(()).expect("the test waits");
            begin.await.expect("the database answers")
        })
    };
    standing.await.expect("it stands in line");
    let first = tokio::spawn(first.commit());
    let mut second = second.await.expect("it does not panic");
    insert(&mut second, 2).await;
    assert_eq!(numbers(&store, Some(&mut second)).await, [1, 2]);
    let committed = numbers(&store, None).await;
    assert!(committed.is_empty(), "one commit serves both");
    assert!(!first.is_finished(), "it is answered after the commit");
    Both {
        store,
        first,
        second,
        _folder: folder,
    }
}

#[tokio::test]
async fn writers_who_wait_for_each_other_share_one_commit() {
    let both = both().await;
    both.second.commit().await.expect("it is committed");
    let first = both.first.await.expect("it does not panic");
    first.expect("it is committed");
    assert_eq!(numbers(&both.store, None).await, [1, 2]);
}

#[tokio::test]
async fn a_writer_that_gives_up_undoes_its_own_work_only() {
    let both = both().await;
    drop(both.second);
    let first = both.first.await.expect("it does not panic");
    first.expect("it is committed");
    assert_eq!(numbers(&both.store, None).await, [1]);
    drop(
        both.store
            .write_any("a test")
            .await
            .expect("the database answers"),
    );
}

#[tokio::test]
async fn all_who_share_a_transaction_hear_that_the_database_has_ended_it() {
    for gives_up in [true, false] {
        let mut both = both().await;
        // As the database does by itself where the disk is full.
        let ended = run(&mut both.second, "ROLLBACK").await;
        ended.expect("the database answers");
        if gives_up {
            drop(both.second);
        } else {
            let second = both.second.commit().await;
            assert!(matches!(second, Err(StoreError::Unavailable(_))));
        }
        let first = both.first.await.expect("it does not panic");
        assert!(matches!(first, Err(StoreError::Unavailable(_))));
        assert!(numbers(&both.store, None).await.is_empty());
        let mut next = both
            .store
            .write_any("a test")
            .await
            .expect("the database answers");
        insert(&mut next, 3).await;
        next.commit().await.expect("it is committed");
        assert_eq!(numbers(&both.store, None).await, [3]);
    }
}

#[tokio::test]
async fn a_writer_that_is_alone_gives_up_without_a_trace() {
    let (store, _folder) = open().await;
    let mut alone = store
        .write_any("a test")
        .await
        .expect("the database answers");
    insert(&mut alone, 1).await;
    drop(alone);
    let mut next = store
        .write_any("a test")
        .await
        .expect("the database answers");
    insert(&mut next, 2).await;
    next.commit().await.expect("it is committed");
    assert_eq!(numbers(&store, None).await, [2]);
}

#[tokio::test]
async fn work_is_committed_although_its_writer_stopped_waiting() {
    let both = both().await;
    both.first.abort();
    assert!(both.first.await.is_err_and(|error| error.is_cancelled()));
    both.second.commit().await.expect("it is committed");
    assert_eq!(numbers(&both.store, None).await, [1, 2]);
}
