//! A row in every table, in the words of each schema, and databases of every schema since the first.

use shared_types::{
    CredentialId, Digest, JoinTokenId, JournalId, ModelAccountId, ModelCallId, OperationId,
    ReplicaId, RunnerId, SandboxId, SecretId, SessionId, TenantId, TurnId, UserId,
};

use super::fixture::{Fixture, at};
use crate::{
    Store,
    database::{Connection, query},
};

on_every_backend!(a_database_of_every_earlier_schema_keeps_its_rows_and_is_used_on);

pub(super) const TENANT: TenantId = TenantId::from_u128(1);
pub(super) const USER: UserId = UserId::from_u128(2);
pub(super) const RUNNER: RunnerId = RunnerId::from_u128(3);
pub(super) const SESSION: SessionId = SessionId::from_u128(4);
const TURN: TurnId = TurnId::from_u128(5);
const SANDBOX: SandboxId = SandboxId::from_u128(6);
pub(super) const OPERATION: OperationId = OperationId::from_u128(7);

/// The public key of the runner.
pub(super) const PUBLIC_KEY: [u8; 32] = [0xfe; 32];

/// The statements that give a row to each table of a schema: those that came with schemas up to this one.
fn statements(schema: i64) -> Vec<String> {
    let (credential, token) = (CredentialId::from_u128(8), JoinTokenId::from_u128(9));
    let (replica, journal, digest) = (
        ReplicaId::from_u128(10),
        JournalId::from_u128(11),
        Digest::of(b"a"),
    );
    let (secret, account, call) = (
        SecretId::from_u128(12),
        ModelAccountId::from_u128(13),
        ModelCallId::from_u128(14),
    );
    let agent = SessionId::from_u128(15);
    let event = r#"{"kind":"from.before","version":1,"said":"ü, and \u0000"}"#;
    let all = [
        (1, format!("INSERT INTO tenants (id, name, created_at) VALUES ('{TENANT}', 'home', 1)")),
        (1, format!("INSERT INTO users (tenant_id, id, name, role, created_at) VALUES ('{TENANT}', '{USER}', 'me', 'owner', 1)")),
        (1, format!("INSERT INTO credentials (tenant_id, id, user_id, kind, name, hash, created_at)
             VALUES ('{TENANT}', '{credential}', '{USER}', 'api_key', 'a key', '{digest}', 1)")),
        (1, format!("INSERT INTO sign_in_codes (tenant_id, user_id, hash, created_at, expires_at) VALUES ('{TENANT}', '{USER}', '{digest}', 1, 2)")),
        (1, "INSERT INTO attempts (id, kind, address, at) VALUES (7, 'sign_in', '192.0.2.1', 1)".to_owned()),
        (1, format!("INSERT INTO runners (tenant_id, id, owner_id, name, labels, public_key, hostname, os, architecture, version,
                 features, ephemeral, enrolled_at) VALUES ('{TENANT}', '{RUNNER}', '{USER}', 'laptop', '{{}}', $1, 'laptop', '', '', '1', '[]', 0, 1)")),
        (1, format!("UPDATE users SET active_runner_id = '{RUNNER}'")),
        (1, format!("INSERT INTO sandboxes (tenant_id, id, runner_id, name, root, isolation, generation, updated_at)
             VALUES ('{TENANT}', '{SANDBOX}', '{RUNNER}', 'workspace', '/work', 'none', 0, 1)")),
        (1, format!("INSERT INTO join_tokens (tenant_id, id, owner_id, name, labels, hash, created_at, expires_at, uses, ephemeral)
             VALUES ('{TENANT}', '{token}', '{USER}', '', '{{}}', '{digest}', 1, 2, 1, 0)")),
        (1, format!("INSERT INTO sessions (tenant_id, id, user_id, title, created_at, updated_at, last_seq, epoch)
             VALUES ('{TENANT}', '{SESSION}', '{USER}', 'a title', 1, 1, 2, 1)")),
        (1, format!("INSERT INTO turns (tenant_id, id, session_id, input_seq, state, created_at, claimed_at, claimed_by, claimed_epoch)
             VALUES ('{TENANT}', '{TURN}', '{SESSION}', 1, 'running', 1, 1, '{replica}', 1)")),
        (1, format!("INSERT INTO events (tenant_id, session_id, seq, at, kind, version, body)
             VALUES ('{TENANT}', '{SESSION}', 1, 1, 'from.before', 1, '{event}'), ('{TENANT}', '{SESSION}', 2, 1, 'from.before', 1, '{event}')")),
        (1, format!("INSERT INTO operations (tenant_id, id, owner, epoch, session_id, turn_id, step, ordinal, attempt, digest, runner_id,
                 sandbox_id, journal_id, boot_id, effect, deadline_at, placed_at)
             VALUES ('{TENANT}', '{OPERATION}', '{SESSION}', 1, '{SESSION}', '{TURN}', 1, 0, 0, '{digest}', '{RUNNER}', '{SANDBOX}',
                 '{journal}', 'boot', 'effectful', 9, 1)")),
        (1, format!("INSERT INTO audit (tenant_id, seq, at, actor, kind, subject, detail) VALUES ('{TENANT}', 1, 1, 'system', 'tenant.created', '{TENANT}', '{{}}')")),
        (1, "UPDATE tenants SET audit_seq = 1".to_owned()),
        (11, format!("INSERT INTO turn_waits (tenant_id, turn_id, step, ordinal, operation_id, awaits, waits_until)
             VALUES ('{TENANT}', '{TURN}', 1, 0, '{OPERATION}', 'command', 5)")),
        (12, format!("INSERT INTO runner_shares (tenant_id, runner_id, user_id, shared_at) VALUES ('{TENANT}', '{RUNNER}', '{USER}', 1)")),
        (14, format!("INSERT INTO session_links (tenant_id, hash, session_id, made_at) VALUES ('{TENANT}', '{digest}', '{SESSION}', 1)")),
        (16, format!("INSERT INTO stream_tickets (tenant_id, hash, credential_id, expires_at) VALUES ('{TENANT}', '{digest}', '{credential}', 2)")),
        (17, format!("INSERT INTO request_keys (tenant_id, user_id, request_key, digest, begun_at) VALUES ('{TENANT}', '{USER}', 'a key', '{digest}', 1)")),
        (18, format!("INSERT INTO settings (tenant_id, subject, name, value, set_by, set_at) VALUES ('{TENANT}', '{TENANT}', 'steps', '9', '{USER}', 1)")),
        (22, format!("INSERT INTO outputs (tenant_id, operation_id, stream, ends, whole) VALUES ('{TENANT}', 'an operation', 'stdout', 2, 0)")),
        (22, format!("INSERT INTO output_frames (tenant_id, operation_id, stream, begins, ends, bytes) VALUES ('{TENANT}', 'an operation', 'stdout', 0, 2, $1)")),
        (31, format!("INSERT INTO turn_waits (tenant_id, turn_id, step, ordinal, awaits, subject, waits_until)
             VALUES ('{TENANT}', '{TURN}', 1, 1, 'turn', '{TURN}', 5)")),
        (32, format!("INSERT INTO data_keys (tenant_id, version, master_key, wrapped, created_at) VALUES ('{TENANT}', 1, 'mk_one', $1, 1)")),
        (32, format!("INSERT INTO secrets (tenant_id, id, version, data_key_version, sealed, created_at, changed_at)
             VALUES ('{TENANT}', '{secret}', 1, 1, $1, 1, 1)")),
        (32, format!("INSERT INTO model_accounts (tenant_id, id, user_id, name, provider, models, secret_id, created_by, created_at, changed_at)
             VALUES ('{TENANT}', '{account}', '{USER}', 'mine', 'openai', '[\"large\"]', '{secret}', '{USER}', 1, 1)")),
        (32, format!("INSERT INTO model_calls (tenant_id, id, at, user_id, session_id, turn_id, step, attempt, model, provider, account, whose,
                 input, cached, cache_written, output, thoughts, duration_ms, outcome)
             VALUES ('{TENANT}', '{call}', 1, '{USER}', '{SESSION}', '{TURN}', 1, 1, 'large', 'openai', '{account}', 'own', 9, 1, 1, 2, 1, 5, 'ok')")),
        (32, format!("INSERT INTO session_images (tenant_id, session_id, digest, media_type, bytes, created_at)
             VALUES ('{TENANT}', '{SESSION}', '{digest}', 'image/png', $1, 1)")),
        (34, format!("INSERT INTO session_texts (tenant_id, session_id, digest, bytes, created_at)
             VALUES ('{TENANT}', '{SESSION}', '{digest}', $1, 1)")),
        (34, format!("INSERT INTO todo_lists (tenant_id, user_id, place, items, updated_at) VALUES ('{TENANT}', '{USER}', 'a place', '[]', 1)")),
        (35, format!("INSERT INTO chat_texts (tenant_id, session_id, seq, user_id, at, speaker, words)
             VALUES ('{TENANT}', '{SESSION}', 1, '{USER}', 1, 'user', ' a word')")),
        (37, format!("INSERT INTO steers (tenant_id, turn_id, number, session_id, seq, next_turn_id, bytes)
             VALUES ('{TENANT}', '{TURN}', 1, '{SESSION}', 2, '{TURN}', 1)")),
        (38, format!("INSERT INTO approvals (tenant_id, id, session_id, user_id, turn_id, step, ordinal, question,
                 asked_at, until_at)
             VALUES ('{TENANT}', 'apr_1', '{SESSION}', '{USER}', '{TURN}', 1, 0, '{{}}', 1, 2)")),
        (38, format!("INSERT INTO permission_rules (tenant_id, id, user_id, decision, rule, set_by, set_at)
             VALUES ('{TENANT}', 'rul_1', '{USER}', 'allow', 'Shell(cargo test *)', '{USER}', 1)")),
        (39, format!("INSERT INTO trusted_files (tenant_id, id, user_id, sandbox_id, folder, digest, text, trusted_at)
             VALUES ('{TENANT}', 'rul_1', '{USER}', '{SANDBOX}', 'app', '{digest}', 'deny = []', 1)")),
        (40, format!("UPDATE runners SET drained_by = '{USER}', drained_at = 1")),
        (42, format!("INSERT INTO duties (name, replica_id) VALUES ('silence', '{replica}')")),
        (42, format!("INSERT INTO rates (tenant_id, user_id, kind, free_at) VALUES ('{TENANT}', '{USER}', 'new', 5)")),
        (42, "UPDATE runners SET refused_version = 1".to_owned()),
        (44, format!("INSERT INTO extensions (tenant_id, id, kind, user_id, name, text, digest, source, packed, set_by, set_at)
             VALUES ('{TENANT}', 'ext_1', 'skill', '{USER}', 'pdf', 'text', '{digest}', '', $1, '{USER}', 1)")),
        (44, format!("INSERT INTO trusted_extensions (tenant_id, user_id, sandbox_id, path, digest, trusted_at)
             VALUES ('{TENANT}', '{USER}', '{SANDBOX}', '.mcp.json', '{digest}', 1)")),
        (45, format!("INSERT INTO sessions (tenant_id, id, user_id, title, created_at, updated_at, last_seq, epoch, parent_session_id,
                 root_session_id, agent_depth, agent_name, agent_role)
             VALUES ('{TENANT}', '{agent}', '{USER}', 'a part', 1, 1, 0, 0, '{SESSION}', '{SESSION}', 1, 'general-1', 'general')")),
        (46, format!("INSERT INTO tool_grants (tenant_id, user_id, url, secret_id, issuer, scopes, wanted, changed_at)
             VALUES ('{TENANT}', '{USER}', 'https://a.example/mcp', '{secret}', 'https://b.example', 'read', 'write', 1)")),
        (46, format!("INSERT INTO tool_sign_ins (tenant_id, state, user_id, url, name, secret_id, ends_at)
             VALUES ('{TENANT}', '{digest}', '{USER}', 'https://a.example/mcp', 'a', '{secret}', 2)")),
        (47, format!("INSERT INTO tool_values (tenant_id, user_id, name, host, secret_id, changed_at)
             VALUES ('{TENANT}', '{USER}', 'TOKEN', 'a.example', '{secret}', 1)")),
    ];
    let until = all.into_iter().filter(|(since, _)| *since <= schema);
    until.map(|(_, statement)| statement).collect()
}

/// Gives a row to each table of a database of this schema.
pub(super) async fn fill(db: &Store, schema: i64) {
    let mut tx = db.write_any("a test").await.expect("it answers");
    for statement in statements(schema) {
        let has_key = statement.contains("$1");
        let mut statement = query(&*statement.leak());
        if has_key {
            statement = statement.bind(PUBLIC_KEY.to_vec());
        }
        statement.execute(&mut tx).await.expect("the row is good");
    }
    tx.commit().await.expect("the disk takes it");
}

/// Holds what [`fill`] wrote to what this program reads of it, and goes on with it.
pub(super) async fn is_used_on(db: &Store) {
    let session = db.session(TENANT, SESSION).await.expect("it is there");
    assert_eq!((session.title.as_str(), session.last_seq), ("a title", 2));
    let events = db.events_after(TENANT, SESSION, 0, 10).await;
    assert_eq!(events.expect("they are there").len(), 2);
    let runner = db.runner(TENANT, RUNNER).await.expect("it is there");
    assert_eq!(runner.name, "laptop");
    let key = db.runner_for_authentication(RUNNER).await;
    let key = key.expect("it answers").expect("it is there").public_key;
    assert_eq!(key, PUBLIC_KEY);
    db.operation(TENANT, OPERATION).await.expect("it is there");
    // It counts on after the rows that came with their numbers.
    let tried = db.record_attempt(crate::AttemptKind::SignIn, "192.0.2.1", at(2));
    tried.await.expect("the number is free");
}

async fn a_database_of_every_earlier_schema_keeps_its_rows_and_is_used_on(fixture: Fixture) {
    let newest = fixture.newest_schema().await;
    for schema in 1..=newest {
        let before = fixture.another(Some(schema)).await;
        fill(&before.db, schema).await;
        let tables = tables_with_rows(&before.db).await;
        let now = before.reopened().await;
        is_used_on(&now.db).await;
        assert_eq!(tables_with_rows(&now.db).await, tables, "schema {schema}");
    }
}

async fn tables_with_rows(db: &Store) -> Vec<String> {
    let mut connection = db.read_any("a test").await.expect("it answers");
    let mut with_rows = Vec::new();
    for table in table_names(&mut connection).await {
        let any = format!("SELECT 1 FROM {table} LIMIT 1").leak();
        let row = query(&*any).fetch_optional(&mut connection).await;
        with_rows.extend(row.expect("it answers").map(|_| table));
    }
    with_rows
}

/// Every table of the schema, asked in another way than copies do.
pub(super) async fn table_names(connection: &mut Connection) -> Vec<String> {
    let names = crate::database::Sql {
        sqlite: "SELECT tbl_name AS name FROM sqlite_schema WHERE tbl_name <> 'sqlite_sequence' GROUP BY tbl_name ORDER BY 1",
        postgres: "SELECT tablename::text COLLATE \"C\" AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1",
    };
    let rows = query(names).fetch_all(connection).await;
    let rows = rows.expect("it answers");
    let name = |row: &crate::database::Row| row.get_text("name").expect("a text").expect("a name");
    rows.iter().map(name).collect()
}
