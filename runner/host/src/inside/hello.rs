//! The first word of the program in a container: who it is there, and with which shell.

use std::{fs::File, io::Read as _};

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};
use shared_types::{
    clean::clean_line,
    limits::{MAX_NAME_BYTES, MAX_PATH_BYTES},
};

/// The version of the frames between daemon and program.
const VERSION: u32 = 1;

/// Shells that commands are run with, best first.
const SHELLS: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/bin/sh"];

/// The table of users.
const USERS: &str = "/etc/passwd";

/// The most bytes of the table of users that are read.
const MAX_USERS_BYTES: u64 = 1024 * 1024;

/// The home of users that have none.
const NO_HOME: &str = "/";

/// The description that the program in a container gives of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the frames that it speaks.
    pub version: u32,
    /// The user that it runs as.
    pub uid: u32,
    /// The group that it runs as.
    pub gid: u32,
    /// The user's name; its number where it has none.
    pub user: String,
    /// The user's home, an absolute path; `/` where it has none.
    pub home: String,
    /// The shell for commands, an absolute path; absent where there is none.
    pub shell: Option<String>,
}

impl Hello {
    /// Of this process.
    pub fn here() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let mut users = String::new();
        if let Ok(file) = File::open(USERS) {
            // A table that cannot be read has no entry for this user.
            let _ = file.take(MAX_USERS_BYTES).read_to_string(&mut users);
        }
        let (user, home) = match entry(&users, uid) {
            Some((user, home)) => (user.to_owned(), home.to_owned()),
            None => (uid.to_string(), NO_HOME.to_owned()),
        };
        let shell = SHELLS
            .into_iter()
            .find(|shell| access(*shell, Access::EXEC_OK).is_ok());
        Self {
            version: VERSION,
            uid,
            gid: rustix::process::getegid().as_raw(),
            user,
            home,
            shell: shell.map(str::to_owned),
        }
    }

    /// True if this end speaks that version.
    pub(super) fn is_understood(&self) -> bool {
        self.version == VERSION
    }

    /// The same, without values that no program of ours sends.
    pub(super) fn believed(self) -> Self {
        let plain = |text: &str, longest: usize| {
            !text.is_empty() && text.len() <= longest && clean_line(text, longest) == text
        };
        let user = Some(self.user).filter(|user| plain(user, MAX_NAME_BYTES));
        let home = Some(self.home);
        let home = home.filter(|home| home.starts_with('/') && plain(home, MAX_PATH_BYTES));
        Self {
            user: user.unwrap_or_else(|| self.uid.to_string()),
            home: home.unwrap_or_else(|| NO_HOME.to_owned()),
            shell: self.shell.filter(|shell| SHELLS.contains(&shell.as_str())),
            ..self
        }
    }
}

/// The name and the home of a user in such a table: `name:password:uid:gid:comment:home:shell`.
pub(crate) fn entry(users: &str, uid: u32) -> Option<(&str, &str)> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        let home = fields.nth(2)?;
        (number.parse() == Ok(uid) && home.starts_with('/')).then_some((name, home))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number_and_one_without_a_home_is_none() {
        let users = "root:x:0:0:root:/root:/bin/sh\n\nbroken\nme:x:1000:1000::/home/me:/bin/bash\n\
                     nobody:x:65534:65534:nobody::/sbin/nologin\n";
        assert_eq!(entry(users, 1000), Some(("me", "/home/me")));
        assert_eq!(entry(users, 0), Some(("root", "/root")));
        assert_eq!(entry(users, 65534), None);
        assert_eq!(entry(users, 1), None);
    }

    #[test]
    fn what_no_program_of_ours_says_is_not_believed() {
        let said = Hello {
            user: "a\u{1b}[2Jb".to_owned(),
            home: "somewhere".to_owned(),
            shell: Some("/tmp/shell".to_owned()),
            ..Hello::here()
        };
        let believed = said.clone().believed();
        assert_eq!(believed.user, said.uid.to_string());
        assert_eq!((believed.home.as_str(), believed.shell), ("/", None));
        assert_eq!(Hello::here().believed(), Hello::here());
    }
}
