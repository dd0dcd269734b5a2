//! The person's browser, where this terminal is on a desktop.
//!
//! Every user of this machine can read the arguments of a program, and the address of a sign-in holds values that prove
//! who began it. So the browser gets the path of a page that leads to the address, and only the person can read the page.

use std::{
    fs::{OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::PathBuf,
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// The program that opens a page in a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opener {
    program: &'static str,
    /// The person's folder for files that end with the sign-in to this machine.
    runtime: Option<PathBuf>,
}

/// A page that leads to an address. Dropping it removes the page.
pub(crate) struct Page {
    folder: TempDir,
}

impl Opener {
    /// The program of this desktop; nothing without a desktop. `text` reads the environment.
    pub(crate) fn of(text: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let is_remote = text("SSH_CONNECTION").is_some();
        let has_display = text("DISPLAY")
            .or_else(|| text("WAYLAND_DISPLAY"))
            .is_some();
        let program = match (is_remote, cfg!(target_os = "macos")) {
            (true, _) => None,
            (false, true) => Some("open"),
            (false, false) => has_display.then_some("xdg-open"),
        };
        Some(Self {
            program: program?,
            runtime: text("XDG_RUNTIME_DIR").map(PathBuf::from),
        })
    }

    /// Begins to open an address of the web. The page has to stay until the browser has read it. Nothing where that
    /// cannot be done: the person opens the address then.
    pub(crate) fn open(&self, address: &str) -> Option<Page> {
        let is_web = address.starts_with("https://") || address.starts_with("http://");
        let page = is_web.then(|| self.page(address))?.ok()?;
        page.command(self.program).spawn().ok()?;
        Some(page)
    }

    /// Writes the page. The temporary folder takes it where the person's own folder is missing.
    fn page(&self, address: &str) -> io::Result<Page> {
        let new = |parent: PathBuf| {
            tempfile::Builder::new()
                .prefix("gantry-")
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(parent)
        };
        let own = self.runtime.clone().and_then(|parent| new(parent).ok());
        let folder = match own {
            Some(folder) => folder,
            None => new(std::env::temp_dir())?,
        };
        let page = Page { folder };
        let mut file = OpenOptions::new();
        file.write(true).create_new(true).mode(0o600);
        file.open(page.path())?
            .write_all(leads_to(address).as_bytes())?;
        Ok(page)
    }
}

impl Page {
    fn path(&self) -> PathBuf {
        self.folder.path().join("sign-in.html")
    }

    fn command(&self, opener: &str) -> Command {
        let mut program = Command::new(opener);
        program
            .arg(self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        program
    }
}

/// A page that goes to this address at once, and has a link for browsers that do not.
fn leads_to(address: &str) -> String {
    let address = address
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;");
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Gantry</title>\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={address}\"></head>\n\
         <body><a href=\"{address}\">Go on to the sign-in</a></body></html>\n"
    )
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    const ADDRESS: &str = "https://login.example.org/authorize?state=s3cret&x=\"><script>'";

    fn of(set: &'static [&'static str]) -> Option<&'static str> {
        let opener = Opener::of(|name| set.contains(&name).then(|| "1".to_owned()));
        opener.map(|opener| opener.program)
    }

    fn opener(program: &'static str, runtime: Option<&Path>) -> Opener {
        Opener {
            program,
            runtime: runtime.map(Path::to_owned),
        }
    }

    #[test]
    #[cfg(not(target_os = "macos"))]
    fn a_browser_is_opened_on_a_desktop_and_not_at_the_end_of_a_remote_line() {
        assert_eq!(of(&["DISPLAY"]), Some("xdg-open"));
        assert_eq!(of(&["WAYLAND_DISPLAY"]), Some("xdg-open"));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["DISPLAY", "SSH_CONNECTION"]), None);
    }

    #[test]
    fn only_an_address_of_the_web_is_opened() {
        for address in ["file:///etc/passwd", "vscode://x", "-h", ""] {
            assert!(opener("true", None).open(address).is_none(), "{address}");
        }
        assert!(opener("true", None).open(ADDRESS).is_some());
        assert!(opener("no-such-program", None).open(ADDRESS).is_none());
    }

    #[test]
    fn the_address_stands_in_a_page_that_only_the_person_can_read_and_in_no_argument() {
        let runtime = tempfile::tempdir().expect("a folder");
        let page = opener("true", Some(runtime.path())).page(ADDRESS);
        let page = page.expect("it is written");
        let command = page.command("true");
        assert_eq!(command.get_args().collect::<Vec<_>>(), [page.path()]);
        assert!(page.path().starts_with(runtime.path()));
        let mode = |path: &Path| {
            let facts = fs::metadata(path).expect("it is there");
            facts.permissions().mode() & 0o777
        };
        assert_eq!(mode(page.folder.path()), 0o700);
        assert_eq!(mode(&page.path()), 0o600);
        let text = fs::read_to_string(page.path()).expect("it is text");
        let escaped = "state=s3cret&amp;x=&quot;&gt;&lt;script&gt;&#39;\">";
        assert_eq!(text.matches(escaped).count(), 2, "{text}");
        drop(page);
        let left = fs::read_dir(runtime.path()).expect("it is there");
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn the_temporary_folder_takes_the_page_where_the_persons_own_is_missing() {
        let missing = opener("true", Some(Path::new("/no/such/folder")));
        let page = missing.page(ADDRESS).expect("it is written");
        assert!(page.path().starts_with(std::env::temp_dir()));
    }
}
