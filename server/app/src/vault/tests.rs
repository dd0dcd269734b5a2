use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use server_store::{NewTenant, NewUser};
use shared_types::{OsEntropy, SystemClock, UserId, entropy::SeededEntropy};
use tempfile::TempDir;

use super::*;

const ONE: SecretId = SecretId::from_u128(1);

/// A database with two tenants, and the server's folder of keys.
struct World {
    folder: TempDir,
    store: Store,
    ours: TenantId,
    theirs: TenantId,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("keys")).expect("it is made");
        let store = Store::open(&folder.path().join("gantry.db")).await;
        let store = store.expect("a database");
        let mut tenants = Vec::new();
        for number in 1..=2 {
            let tenant = NewTenant {
                id: TenantId::from_u128(number),
                name: "a tenant".to_owned(),
            };
            let owner = NewUser {
                id: UserId::from_u128(number),
                name: "owner".to_owned(),
            };
            let now = SystemClock::new().now();
            let made = store.create_tenant(&tenant, &owner, now).await;
            made.expect("the ids are new");
            tenants.push(tenant.id);
        }
        Self {
            folder,
            store,
            ours: tenants[0],
            theirs: tenants[1],
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("keys/master")
    }

    fn own(&self) -> MasterKeySource {
        MasterKeySource::Own(self.path())
    }

    async fn unlock(&self, source: MasterKeySource) -> Result<Vault, VaultError> {
        let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
        Vault::unlock(self.store.clone(), source, clock, entropy).await
    }

    async fn vault(&self) -> Vault {
        self.unlock(self.own()).await.expect("it fits")
    }

    /// A new master key, as an operator writes it.
    fn key(seed: u64) -> String {
        let text = MasterKeys::generate(&SeededEntropy::new(seed)).to_text();
        text.trim().to_owned()
    }
}

fn given(keys: &[&str]) -> MasterKeySource {
    MasterKeySource::Given {
        from: "GANTRY_MASTER_KEY",
        text: Zeroizing::new(keys.join("\n")),
    }
}

fn plain() -> Plain {
    Plain::new("sk-hush".to_owned())
}

async fn opens(vault: &Vault, tenant: TenantId, secret: &SealedSecret) -> bool {
    match vault.open(tenant, secret).await {
        Ok(text) => text.expose_text() == Some("sk-hush"),
        Err(_) => false,
    }
}

fn told<T>(result: Result<T, VaultError>) -> String {
    result.err().expect("it is refused").to_string()
}

#[tokio::test]
async fn a_secret_is_opened_at_its_place_alone_and_does_not_show_in_its_sealed_form() {
    let world = World::new().await;
    let vault = world.vault().await;
    let sealed = vault.seal(world.ours, ONE, 1, &plain()).await;
    let sealed = sealed.expect("there is a key");
    let again = vault.seal(world.ours, ONE, 1, &plain()).await;
    assert_ne!(again.expect("there is a key").sealed, sealed.sealed);
    assert!(!String::from_utf8_lossy(&sealed.sealed).contains("hush"));
    assert!(opens(&vault, world.ours, &sealed).await);
    let (mut other_id, mut other_version) = (sealed.clone(), sealed.clone());
    other_id.id = SecretId::from_u128(2);
    other_version.version = 2;
    for moved in [other_id, other_version] {
        let refused = told(vault.open(world.ours, &moved).await);
        assert!(refused.contains("one of another place"), "{refused}");
    }
    let of_theirs = vault.seal(world.theirs, ONE, 1, &plain()).await;
    let of_theirs = of_theirs.expect("there is a key");
    assert!(!opens(&vault, world.ours, &of_theirs).await);
    for at in 0..sealed.sealed.len() {
        let mut damaged = sealed.clone();
        damaged.sealed[at] ^= 1;
        assert!(!opens(&vault, world.ours, &damaged).await, "byte {at}");
        damaged.sealed.truncate(at);
        assert!(!opens(&vault, world.ours, &damaged).await, "cut at {at}");
    }
    let mut newer = sealed;
    newer.sealed[0] = 2;
    let refused = told(vault.open(world.ours, &newer).await);
    assert!(refused.contains("newer version"), "{refused}");
}

#[tokio::test]
async fn a_wrapped_data_key_of_another_tenant_or_version_is_refused() {
    let world = World::new().await;
    let vault = world.vault().await;
    let sealed = vault.seal(world.theirs, ONE, 1, &plain()).await;
    let sealed = sealed.expect("there is a key");
    let mut stolen = world.store.data_key(world.theirs, 1).await.expect("a row");
    stolen.tenant = world.ours;
    let now = SystemClock::new().now();
    world
        .store
        .add_data_key(&stolen, now)
        .await
        .expect("it is new");
    let refused = told(vault.open(world.ours, &sealed).await);
    assert!(refused.contains("open the data key"), "{refused}");
}

#[tokio::test]
async fn the_first_start_makes_a_private_master_key_and_the_next_one_uses_it() {
    let world = World::new().await;
    let sealed = world
        .vault()
        .await
        .seal(world.ours, ONE, 1, &plain())
        .await
        .expect("there is a key");
    let mode = fs::metadata(world.path())
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(opens(&world.vault().await, world.ours, &sealed).await);
}

#[tokio::test]
async fn a_master_key_that_does_not_fit_is_refused_and_nothing_is_overwritten() {
    let world = World::new().await;
    let sealed = world
        .vault()
        .await
        .seal(world.ours, ONE, 1, &plain())
        .await
        .expect("there is a key");
    let right = fs::read_to_string(world.path()).expect("it is there");
    let wrapped = world.store.data_key(world.ours, 1).await.expect("a row");
    fs::remove_file(world.path()).expect("it is there");
    let refused = told(world.unlock(world.own()).await);
    assert!(
        refused.contains(&wrapped.master_key) && refused.contains("put that file back"),
        "{refused}"
    );
    assert!(!world.path().exists(), "no other key takes its place");
    let wrong = World::key(7);
    for source in [given(&[&wrong]), {
        write(&world.path(), &wrong);
        world.own()
    }] {
        let refused = told(world.unlock(source).await);
        assert!(refused.contains("add that key on a line"), "{refused}");
        assert!(!refused.contains(&wrong) && !refused.contains(right.trim()));
    }
    let kept = fs::read_to_string(world.path()).expect("it is there");
    assert_eq!(kept.trim(), wrong);
    let stored = world.store.data_key(world.ours, 1).await.expect("a row");
    assert_eq!(stored, wrapped);
    let both = world.unlock(given(&[&wrong, right.trim()])).await;
    assert!(opens(&both.expect("it fits"), world.ours, &sealed).await);
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_keeps_no_server_from_starting() {
    let world = World::new().await;
    let keys = world.folder.path().join("keys");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o500)).expect("it is ours");
    let vault = world.unlock(world.own()).await.expect("it starts");
    // Root may write everywhere.
    if !world.path().exists() {
        let refused = told(vault.seal(world.ours, ONE, 1, &plain()).await);
        assert!(refused.contains("set master_key_file"), "{refused}");
    }
}

#[tokio::test]
async fn a_rotation_wraps_all_data_keys_anew_and_a_running_server_notices() {
    let world = World::new().await;
    let (vault, late) = (world.vault().await, world.vault().await);
    let sealed = vault.seal(world.ours, ONE, 1, &plain()).await;
    let sealed = sealed.expect("there is a key");
    let before = fs::read_to_string(world.path()).expect("it is there");
    let rotated = rotate(&world.store, &world.own(), &OsEntropy).await;
    let rotated = rotated.expect("the file can be written");
    assert_eq!((rotated.data_keys, rotated.older), (1, 1));
    let after = fs::read_to_string(world.path()).expect("it is there");
    assert_eq!(after.lines().count(), 1);
    assert_ne!(after, before);
    let row = world.store.data_key(world.ours, 1).await.expect("a row");
    assert_eq!(row.master_key, rotated.master_key);
    assert!(opens(&vault, world.ours, &sealed).await);
    // This one has not met the new key, and makes a data key.
    let of_theirs = late.seal(world.theirs, ONE, 1, &plain()).await;
    let of_theirs = of_theirs.expect("it reads the file again");
    let row = world.store.data_key(world.theirs, 1).await.expect("a row");
    assert_eq!(row.master_key, rotated.master_key);
    let restarted = world.vault().await;
    assert!(opens(&restarted, world.ours, &sealed).await);
    assert!(opens(&restarted, world.theirs, &of_theirs).await);
}

#[tokio::test]
async fn secrets_are_sealed_and_opened_while_keys_rotate() {
    let world = World::new().await;
    let vault = world.vault().await;
    let sealed = vault.seal(world.ours, ONE, 1, &plain()).await;
    let sealed = sealed.expect("there is a key");
    let rotations = async {
        for _ in 0..5 {
            let rotated = rotate(&world.store, &world.own(), &OsEntropy).await;
            rotated.expect("the file can be written");
        }
    };
    let work = async {
        for _ in 0..50 {
            assert!(opens(&vault, world.ours, &sealed).await);
            tokio::task::yield_now().await;
        }
        vault.seal(world.theirs, ONE, 1, &plain()).await
    };
    let ((), of_theirs) = tokio::join!(rotations, work);
    let restarted = world.vault().await;
    assert!(opens(&restarted, world.ours, &sealed).await);
    let of_theirs = of_theirs.expect("there is a key");
    assert!(opens(&restarted, world.theirs, &of_theirs).await);
}

#[tokio::test]
async fn a_rotation_that_was_cut_off_is_continued_by_the_next() {
    let world = World::new().await;
    let sealed = world
        .vault()
        .await
        .seal(world.ours, ONE, 1, &plain())
        .await
        .expect("there is a key");
    // Killed after the new key was written in front.
    let older = fs::read_to_string(world.path()).expect("it is there");
    write(&world.path(), &format!("{}\n{older}", World::key(8)));
    assert!(opens(&world.vault().await, world.ours, &sealed).await);
    let rotated = rotate(&world.store, &world.own(), &OsEntropy).await;
    assert_eq!(rotated.expect("it goes on").older, 2);
    assert!(opens(&world.vault().await, world.ours, &sealed).await);
}

#[tokio::test]
async fn keys_of_the_environment_are_rotated_to_the_first_one() {
    let world = World::new().await;
    let (one, two) = (World::key(1), World::key(2));
    let vault = world.unlock(given(&[&one])).await.expect("it fits");
    let sealed = vault.seal(world.ours, ONE, 1, &plain()).await;
    let sealed = sealed.expect("there is a key");
    let both = given(&[&two, &one]);
    let rotated = rotate(&world.store, &both, &OsEntropy).await;
    let rotated = rotated.expect("both are there");
    assert_eq!((rotated.data_keys, rotated.older), (1, 1));
    assert!(!opens(&vault, world.ours, &sealed).await, "it has only one");
    let held = HeldKeys::read(&world.store, given(&[&two])).await;
    vault.use_keys(held.expect("it fits"));
    assert!(opens(&vault, world.ours, &sealed).await);
    let refused = told(world.unlock(given(&[&one])).await);
    assert!(refused.contains("GANTRY_MASTER_KEY has only"), "{refused}");
}

#[tokio::test]
async fn a_key_file_that_others_can_read_or_that_holds_no_key_is_refused() {
    let world = World::new().await;
    let key = World::key(3);
    write(&world.path(), &key);
    for mode in [0o644, 0o640, 0o700, 0o666] {
        fs::set_permissions(world.path(), fs::Permissions::from_mode(mode)).expect("it is ours");
        let refused = told(world.unlock(world.own()).await);
        assert!(refused.contains("chmod 600"), "{mode:o}: {refused}");
    }
    for text in ["", "\n\n", "no key", "c2hvcnQ=", &format!("{key}\nno key")] {
        write(&world.path(), text);
        let refused = told(world.unlock(world.own()).await);
        assert!(refused.contains("openssl rand -base64 32"), "{refused}");
        assert!(!refused.contains(&key), "{refused}");
        let kept = fs::read_to_string(world.path()).expect("it is there");
        assert_eq!(kept, text, "it is never replaced");
    }
    let missing = MasterKeySource::File(world.folder.path().join("none"));
    let refused = told(world.unlock(missing).await);
    assert!(refused.contains("does not exist"), "{refused}");
}

#[test]
fn a_master_key_is_read_in_base64_and_in_hexadecimal() {
    let parsed = |text: &str| MasterKeys::parse(text, &"a test").expect("it is a key");
    let hex = "00112233445566778899aabbccddeeff".repeat(2);
    let base64 = "ABEiM0RVZneImaq7zN3u/wARIjNEVWZ3iJmqu8zd7v8";
    let current = parsed(&hex).current().to_owned();
    for same in [
        hex.to_uppercase(),
        format!("  {base64}=\r\n"),
        base64.to_owned(),
    ] {
        assert_eq!(parsed(&same).current(), current, "{same}");
    }
    let shown = format!("{:?}", parsed(&hex));
    assert_eq!(shown, format!("MasterKeys({current})"));
}

fn write(path: &Path, text: &str) {
    let _ = fs::remove_file(path);
    fs::write(path, text).expect("it is written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("it is ours");
}

#[tokio::test]
async fn of_two_servers_that_make_a_secret_at_once_both_have_that_of_one() {
    let world = World::new().await;
    let one = world.unlock(world.own()).await.expect("a key");
    let other = world.unlock(world.own()).await.expect("a key");
    let kept = async |vault: &Vault, text: &str| {
        let made = || Plain::new(text.to_owned());
        let kept = vault.kept_or(world.ours, ONE, made).await;
        kept.expect("it is kept").expose().to_vec()
    };
    let (first, second) = tokio::join!(kept(&one, "one"), kept(&other, "other"));
    assert_eq!(first, second);
    assert_eq!(kept(&one, "later").await, first);
}
