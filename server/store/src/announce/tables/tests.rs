use super::*;

fn tables(statement: &str) -> Vec<(&str, Option<&str>)> {
    let written = written(statement).into_iter();
    written.map(|one| (one.table, one.column)).collect()
}

#[test]
fn a_statement_is_taken_apart_into_the_tables_that_it_writes() {
    type Written = (&'static str, Option<&'static str>);
    let cases: [(&str, &[Written]); 8] = [
        ("SELECT 1 FROM users WHERE id = $1 FOR UPDATE", &[]),
        ("SELECT 1 FROM tenants WHERE id = $1 FOR NO KEY UPDATE", &[]),
        ("INSERT INTO users (id) VALUES ($1)", &[("users", None)]),
        ("INSERT INTO users(id) VALUES ($1)", &[("users", None)]),
        (
            "INSERT INTO settings (a) VALUES ($1) ON CONFLICT (a) DO UPDATE SET a = excluded.a",
            &[("settings", None)],
        ),
        (
            "UPDATE turns\n             SET failures = 1 WHERE id = $1",
            &[("turns", Some("failures"))],
        ),
        (
            "DELETE FROM operations WHERE id = $1",
            &[("operations", None)],
        ),
        (
            "WITH numbered AS (SELECT 1) INSERT INTO events (seq) SELECT 1 FROM numbered",
            &[("events", None)],
        ),
    ];
    for (statement, expected) in cases {
        assert_eq!(tables(statement), expected, "{statement}");
    }
}

#[test]
fn a_table_that_nobody_has_thought_of_is_not_taken_for_one_without_lists() {
    let new = Written {
        table: "inventions",
        column: None,
    };
    assert_eq!(lists(new), None);
}
