//! Secrets at rest: the master key beside the database, its rotation, and what a backup needs.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Output, sync::Arc};

use server_app::vault::{MasterKeySource, Plain, Vault};
use server_store::{SealedSecret, Store};
use shared_types::{OsEntropy, SecretId, SystemClock, TenantId};
use tests::{gantry::Gantry, postgres::database_of_run};

/// The stored secret.
const HUSH: &str = "sk-canary-77f0c2a9e1";

/// A second program on the server's database and with its master key, as another server would be.
struct Beside {
    store: Store,
    vault: Vault,
    tenant: TenantId,
}

impl Beside {
    async fn of(gantry: &Gantry) -> Self {
        let folder = gantry.home().join("server");
        let store = match gantry.database_url() {
            Some(url) => Store::open_postgres_beside(&url.parse().expect("a URL")).await,
            None => Store::open_beside(&folder.join("gantry.db")).await,
        };
        let store = store.expect("it is there");
        let source = MasterKeySource::Own(folder.join("keys/master"));
        let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
        let vault = Vault::unlock(store.clone(), source, clock, entropy).await;
        let first = store.first_owner().await.expect("it answers");
        Self {
            store,
            vault: vault.expect("it fits"),
            tenant: first.expect("it is there").0,
        }
    }

    async fn seal(&self) -> SealedSecret {
        let id = SecretId::from_u128(1);
        let text = Plain::new(HUSH.to_owned());
        let sealed = self.vault.seal(self.tenant, id, 1, &text).await;
        sealed.expect("there is a key")
    }

    async fn opens(&self, secret: &SealedSecret) -> bool {
        let text = self.vault.open(self.tenant, secret).await;
        text.expect("it fits").expose_text() == Some(HUSH)
    }
}

async fn verb(gantry: &Gantry, arguments: &[&str]) -> Output {
    let output = gantry.operator(arguments).output().await;
    let output = output.expect("it starts");
    let told = [&output.stdout[..], &output.stderr].concat();
    assert!(!String::from_utf8_lossy(&told).contains(HUSH));
    output
}

async fn done(gantry: &Gantry, arguments: &[&str]) -> String {
    let output = verb(gantry, arguments).await;
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

async fn refused(gantry: &Gantry, arguments: &[&str]) -> String {
    let output = verb(gantry, arguments).await;
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(told.lines().count(), 1, "{told}");
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn the_master_key_is_rotated_while_the_server_runs_and_a_wrong_one_keeps_it_from_starting() {
    let mut gantry = Gantry::practice().await;
    let key = gantry.home().join("server/keys/master");
    let read = || fs::read_to_string(&key).expect("the server made it");
    let mode = fs::metadata(&key)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let told = done(&gantry, &["check-config"]).await;
    assert!(
        told.contains(&format!("master key in {}", key.display())),
        "{told}"
    );
    let first = read();
    let beside = Beside::of(&gantry).await;
    let sealed = beside.seal().await;
    let told = done(&gantry, &["secrets", "rotate"]).await;
    assert!(told.starts_with("wrapped 1 data keys anew"), "{told}");
    let second = read();
    assert_ne!(second, first);
    assert!(!told.contains(second.trim()), "{told}");
    assert!(beside.opens(&sealed).await);
    beside.store.close().await;
    done(&gantry, &["reload"]).await;
    gantry.stop_server().await;

    fs::write(&key, &first).expect("it is ours");
    for verb in ["run", "check-config"] {
        let told = refused(&gantry, &[verb]).await;
        assert!(told.contains("failed to use the master key"), "{told}");
        assert!(!told.contains(first.trim()), "{told}");
    }
    fs::remove_file(&key).expect("it is ours");
    let told = refused(&gantry, &["run"]).await;
    assert!(told.contains("put that file back"), "{told}");
    assert!(!key.exists(), "no other key takes its place");
    let lost = told.split_whitespace().find(|word| word.starts_with("mk_"));
    let lost = lost
        .expect("it names the key")
        .trim_end_matches(',')
        .to_owned();
    fs::write(&key, &second).expect("it is ours");
    let told = refused(&gantry, &["run"]).await;
    assert!(told.contains("chmod 600"), "{told}");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let told = refused(&gantry, &["secrets", "forget", &lost]).await;
    assert!(told.contains("is not lost"), "{told}");
    gantry.start_server().await;
    gantry.stop_server().await;

    fs::remove_file(&key).expect("it is ours");
    let told = done(&gantry, &["secrets", "forget", &lost]).await;
    assert!(told.starts_with("removed 0 secrets"), "{told}");
    let told = refused(&gantry, &["secrets", "forget", &lost]).await;
    assert!(told.contains("wraps nothing here"), "{told}");
    gantry.start_server().await;
    assert_ne!(read(), second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_has_no_master_key_and_says_that_restoring_needs_it() {
    let mut gantry = Gantry::practice().await;
    let folder = gantry.home().join("server");
    let key = folder.join("keys/master");
    let backup = |name: &str| gantry.home().join(name).display().to_string();
    let (empty, full) = (backup("empty.tar.gz"), backup("full.tar.gz"));
    let told = done(&gantry, &["backup", &empty]).await;
    assert!(told.contains("needs no master key"), "{told}");
    let beside = Beside::of(&gantry).await;
    let sealed = beside.seal().await;
    beside.store.close().await;
    let needs = format!("a restored server needs {}", key.display());
    let told = done(&gantry, &["backup", &full]).await;
    assert!(told.contains(&needs), "{told}");
    gantry.stop_server().await;
    let kept = fs::read(&key).expect("it is there");
    fs::remove_dir_all(&folder).expect("it is ours");
    if let Some(url) = database_of_run() {
        gantry.use_database(&url);
    }
    let told = done(&gantry, &["restore", &full]).await;
    assert!(told.contains(&needs), "{told}");
    let told = refused(&gantry, &["run"]).await;
    assert!(told.contains("put that file back"), "{told}");
    fs::write(&key, kept).expect("it is ours");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("it is ours");
    gantry.start_server().await;
    let beside = Beside::of(&gantry).await;
    assert!(beside.opens(&sealed).await);
}
