//! A workstation that has nothing of ours: a bare Debian with files and processes of its own, on this machine's
//! network. It needs root. `tests/run` makes the files once and names their folder.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use tempfile::TempDir;

use crate::gantry::{children_of, eventually};

/// Names the folder with the files of a bare Debian with curl.
const ROOT: &str = "GANTRY_WORKSTATION";

/// See the module. With it, all of its processes and files go.
pub struct Workstation {
    files: TempDir,
    /// Holds the namespaces; its child is the first process in them.
    holder: Child,
    first: u32,
}

impl Workstation {
    /// A new one.
    ///
    /// # Panics
    /// If `tests/run` did not make its files, or this is not root.
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment of the tests is theirs to read"
    )]
    pub async fn bare() -> Self {
        let bare = std::env::var(ROOT).unwrap_or_else(|_| {
            panic!("{ROOT} names no files of a workstation: run `make test`, which makes them")
        });
        let files = tempfile::tempdir().expect("a temporary folder");
        let root = files.path().join("root");
        let copied = Command::new("cp")
            .args(["--archive", "--reflink=auto", &bare])
            .arg(&root)
            .status();
        assert!(copied.expect("cp starts").success());
        let mut proc = std::ffi::OsString::from("--mount-proc=");
        proc.push(root.join("proc"));
        // The first process waits for what loses its parent.
        let wait = "while :; do sleep 1000 & wait $!; done";
        let mut holder = Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--kill-child"])
            .arg(proc)
            .arg("chroot")
            .arg(&root)
            .args(["sh", "-c", wait])
            .stdin(Stdio::null())
            .spawn()
            .expect("unshare starts");
        let first = eventually("the workstation is up", || async {
            let first = *children_of(holder.id()).first()?;
            let name = std::fs::read_to_string(format!("/proc/{first}/comm")).ok()?;
            (name.trim() == "sh").then_some(first)
        })
        .await;
        assert!(holder.try_wait().expect("it can be asked").is_none());
        Self {
            files,
            holder,
            first,
        }
    }

    /// Its files, as this machine sees them.
    pub fn root(&self) -> PathBuf {
        self.files.path().join("root")
    }

    /// What its root types into a shell, in this folder, and what is answered.
    pub async fn types(&self, folder: &str, line: &str) -> Output {
        let mut shell = tokio::process::Command::new("nsenter");
        shell
            .arg(format!("--target={}", self.first))
            .args(["--mount", "--pid", "--root", "--wd"])
            .args(["env", "-i", "HOME=/root"])
            .arg("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .args(["sh", "-c", &format!("cd {folder} && {line}")])
            .stdin(Stdio::null())
            .kill_on_drop(true);
        shell.output().await.expect("nsenter starts")
    }

    /// All files but those of the kernel, of `/tmp` and of the runner's home, by their paths.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.root()];
        let left_out =
            ["proc", "dev", "sys", "tmp", "root/.gantry"].map(|name| self.root().join(name));
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if left_out.contains(&path) {
                    continue;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(path.clone());
                }
                found.push(path);
            }
        }
        found.sort();
        found
    }
}

impl Drop for Workstation {
    fn drop(&mut self) {
        // The first process takes all others with it.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Makes the archive with a runner's programs, of this build, in a folder.
pub async fn make_archive(folder: &Path) -> PathBuf {
    let made = tokio::process::Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/dist"))
        .env("PROFILE", "debug")
        .env("DIST_ONLY", "runner")
        .env("LEVEL", "1")
        .env("OUT", folder)
        .output()
        .await
        .expect("deploy/dist starts");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let arch = std::env::consts::ARCH;
    folder.join(format!("gantry-runner-{arch}-linux.tar.gz"))
}
