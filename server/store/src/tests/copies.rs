use super::{
    fixture::{Fixture, REPLICA, at, this_replica},
    history,
};
use crate::{
    CopyError, Store, copy,
    database::{Snapshot, query},
};

on_every_backend!(
    every_table_but_that_of_processes_is_copied,
    every_row_comes_to_either_kind_with_its_digest,
    a_database_with_rows_is_not_written_into,
    a_database_of_another_schema_is_not_written_into,
    a_copy_is_of_one_moment,
    rows_that_cannot_be_written_leave_nothing,
);

/// A database of each kind, without rows.
async fn of_either_kind() -> [Fixture; 2] {
    [Fixture::sqlite().await, Fixture::postgres().await]
}

async fn rows(db: &Store, table: &'static str) -> i64 {
    let mut connection = db.read_any("a test").await.expect("it answers");
    let count = format!("SELECT COUNT(*) AS many FROM {table}").leak();
    let row = query(&*count).fetch_one(&mut connection).await;
    let many = row.expect("it answers").get_integer("many");
    many.expect("a number").expect("a number")
}

async fn every_table_but_that_of_processes_is_copied(fixture: Fixture) {
    let mut connection = fixture.db.read_any("a test").await.expect("it answers");
    let mut expected = history::table_names(&mut connection).await;
    expected.retain(|name| !["_sqlx_migrations", "replicas", "duties"].contains(&name.as_str()));
    drop(connection);
    let mut snapshot = Snapshot::of(&fixture.db).await.expect("it answers");
    let tables = snapshot.tables().await.expect("every column is carried");
    let names: Vec<_> = tables.iter().map(|table| table.name.clone()).collect();
    assert_eq!(names, expected);
    for other in of_either_kind().await {
        let mut snapshot = Snapshot::of(&other.db).await.expect("it answers");
        let others = snapshot.tables().await.expect("every column is carried");
        let columns =
            |table: &crate::database::TableSchema| (table.name.clone(), table.columns.clone());
        let (ours, others): (Vec<_>, Vec<_>) = (
            tables.iter().map(columns).collect(),
            others.iter().map(columns).collect(),
        );
        assert_eq!(ours, others);
    }
}

async fn every_row_comes_to_either_kind_with_its_digest(fixture: Fixture) {
    history::fill(&fixture.db, i64::MAX).await;
    fixture.tenant().await.at_work().await;
    let mut before = Vec::new();
    for target in of_either_kind().await {
        let copied = copy(&fixture.db, &target.db).await.expect("it is empty");
        let empty = copied.iter().filter(|table| table.rows == 0);
        let empty: Vec<_> = empty.map(|table| &table.name).collect();
        assert!(empty.is_empty(), "give them a row in history.rs: {empty:?}");
        history::is_used_on(&target.db).await;
        before.push(copied);
    }
    assert_eq!(before[0], before[1]);
}

async fn a_database_with_rows_is_not_written_into(fixture: Fixture) {
    fixture.tenant().await;
    for target in of_either_kind().await {
        let replica = this_replica(REPLICA, "here");
        let started = target.db.start_replica(&replica, at(1)).await;
        started.expect("it answers");
        let refused = copy(&fixture.db, &target.db)
            .await
            .expect_err("a server uses it");
        assert!(
            refused.to_string().contains("replicas has rows"),
            "{refused}"
        );
        let ended = target.db.end_replica(REPLICA, None).await;
        assert!(ended.expect("it answers"));
        target.tenant().await;
        let refused = copy(&fixture.db, &target.db)
            .await
            .expect_err("it has a tenant");
        assert!(matches!(refused, CopyError::NotEmpty { .. }), "{refused}");
        assert_eq!(rows(&target.db, "tenants").await, 1);
    }
}

async fn a_database_of_another_schema_is_not_written_into(fixture: Fixture) {
    let older = fixture.another(Some(5)).await;
    let refused = copy(&fixture.db, &older.db)
        .await
        .expect_err("it lacks columns");
    assert!(matches!(refused, CopyError::OtherTable { .. }), "{refused}");
}

async fn a_copy_is_of_one_moment(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let mut snapshot = Snapshot::of(&fixture.db).await.expect("it answers");
    let tables = snapshot.tables().await.expect("every column is carried");
    ours.session().await;
    for table in tables {
        let mut rows = snapshot.rows(&table).expect("it answers");
        let row = futures_util::TryStreamExt::try_next(&mut rows).await;
        let is_empty = row.expect("it answers").is_none();
        assert!(is_empty || !["sessions", "events"].contains(&table.name.as_str()));
    }
}

async fn rows_that_cannot_be_written_leave_nothing(fixture: Fixture) {
    history::fill(&fixture.db, i64::MAX).await;
    for target in of_either_kind().await {
        let mut tx = target.db.write_any("a test").await.expect("it answers");
        let stricter = "CREATE UNIQUE INDEX one_event ON events (kind)";
        query(stricter).execute(&mut tx).await.expect("it is empty");
        tx.commit().await.expect("the disk takes it");
        let refused = copy(&fixture.db, &target.db).await;
        assert!(refused.is_err());
        assert_eq!(rows(&target.db, "tenants").await, 0);
    }
}
