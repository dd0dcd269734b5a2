//! The file on a real disk. Where these tests run as root, they are the root that the file belongs to.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
};

use super::*;

/// A folder of policies, which only its owner may write.
struct Etc {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Etc {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("policy.toml");
        Self {
            _folder: folder,
            path,
        }
    }

    fn of(text: &str) -> Self {
        let etc = Self::new();
        etc.write(text);
        etc
    }

    fn write(&self, text: &str) {
        fs::write(&self.path, text).expect("a policy");
        self.permit(0o644);
    }

    fn permit(&self, mode: u32) {
        fs::set_permissions(&self.path, Permissions::from_mode(mode)).expect("permissions");
    }

    fn source(&self) -> PolicySource {
        PolicySource::of_test(self.path.clone())
    }

    fn shown(&self) -> String {
        shown(&self.source())
    }
}

#[test]
fn a_policy_is_told_in_one_line_and_an_absent_one_as_well() {
    let etc = Etc::new();
    assert_eq!(
        etc.shown(),
        format!("none: there is no {}", etc.path.display())
    );
    etc.write(
        "mode = \"ask\"\nroots = [\"/srv\"]\nallow = [\"Shell(cargo test *)\"]\ndeny = [\"Write(**/.env)\"]\n\
         network = false\ncallers = false\n",
    );
    let told = format!(
        "{}: agents at most in mode ask; work beneath /srv; 1 rules allow, 1 deny; sandboxes without network; agents only",
        etc.path.display()
    );
    assert_eq!(etc.shown(), told);
}

#[test]
fn a_policy_that_cannot_be_trusted_or_understood_is_one_that_permits_nothing() {
    for (text, reason) in [
        ("mood = \"ask\"", "unknown field"),
        ("mode = \"bypass\"", "unknown variant"),
        ("deny = [\"git push\"]", ""),
        ("roots = [\"work\"]", "does not begin with /"),
        ("mode = ", ""),
        (&format!("# {}", "x".repeat(64 * 1024)), "larger than"),
        (
            &format!("deny = [{}]", "\"Write(a)\",".repeat(257)),
            "257 entries",
        ),
    ] {
        let told = Etc::of(text).shown();
        assert!(told.contains("cannot be used"), "{text:.40}: {told}");
        assert!(told.contains(reason) && !told.contains('\n'), "{told}");
    }
}

#[test]
fn a_policy_that_others_could_have_written_is_not_believed() {
    let etc = Etc::of("");
    assert!(!etc.shown().contains("cannot be used"));
    for mode in [0o664, 0o646] {
        etc.permit(mode);
        assert!(etc.shown().contains("chmod go-w"), "{}", etc.shown());
    }
    etc.permit(0o644);
    let folder = etc.path.parent().expect("a folder");
    fs::set_permissions(folder, Permissions::from_mode(0o777)).expect("permissions");
    assert!(
        etc.shown().contains("its folder can be written"),
        "{}",
        etc.shown()
    );
    fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("permissions");
    let mut another = etc.source();
    another.writer += 1;
    assert!(
        shown(&another).contains("belongs to user"),
        "{}",
        shown(&another)
    );
    fs::rename(&etc.path, folder.join("real.toml")).expect("a move");
    symlink(folder.join("real.toml"), &etc.path).expect("a link");
    assert!(etc.shown().contains("symbolic link"), "{}", etc.shown());
    fs::remove_file(&etc.path).expect("removed");
    fs::create_dir(&etc.path).expect("a folder");
    assert!(etc.shown().contains("no regular file"), "{}", etc.shown());
}

#[test]
fn the_mode_is_told_to_the_server_whenever_it_changes_and_a_broken_policy_tells_the_least() {
    let etc = Etc::new();
    let (said, mut heard) = watch::channel(v1::Capabilities::default());
    let mut guard = Guard::open(etc.source(), said);
    let mut ceiling = || {
        heard
            .has_changed()
            .expect("a guard")
            .then(|| heard.borrow_and_update().ceiling())
    };
    assert_eq!(ceiling(), None);
    for (text, told) in [
        ("mode = \"ask\"", Some(v1::Mode::Ask)),
        ("mode = \"ask\"\ncallers = false", None),
        ("", Some(v1::Mode::Full)),
        ("mode = \"askk\"", Some(v1::Mode::Plan)),
    ] {
        etc.write(text);
        guard.read();
        assert_eq!(ceiling(), told, "{text}");
    }
    fs::remove_file(&etc.path).expect("removed");
    guard.read();
    assert_eq!(ceiling(), Some(v1::Mode::Unspecified));
}

#[test]
fn no_sandbox_with_a_network_is_made_where_there_must_be_none_or_that_is_not_known() {
    let spec = |network| SandboxSpec {
        name: "usr_1".to_owned(),
        template: "base".to_owned(),
        limits: shared_types::SandboxLimits::default(),
        network,
        may_sudo: false,
    };
    let etc = Etc::of("network = false");
    let said = watch::channel(v1::Capabilities::default()).0;
    let mut guard = Guard::open(etc.source(), said);
    let mut permits = |network| guard.permits_sandbox(&spec(network));
    assert_eq!(permits(SandboxNetwork::None), Ok(()));
    let refusal = permits(SandboxNetwork::Open).expect_err("a network");
    assert_eq!(refusal.code, RefusalCode::ForbiddenByRunnerPolicy);
    assert!(
        refusal.message.contains("policy.toml"),
        "{}",
        refusal.message
    );
    etc.write("network = 1");
    assert!(permits(SandboxNetwork::None).is_err());
    fs::remove_file(&etc.path).expect("removed");
    assert_eq!(permits(SandboxNetwork::Open), Ok(()));
}
