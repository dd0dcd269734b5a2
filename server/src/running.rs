//! The state of a running server, for verbs on the same machine: the file `server.running` in its folder.
//!
//! The file counts only while the folder is taken. It is replaced as a whole, so that no reader sees half of it. If the
//! disk is full, the file stays as it was.

use std::{
    fmt::{self, Write as _},
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write as _},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    str::FromStr,
};

use anyhow::{Context as _, anyhow, bail};
use shared_types::{Digest, clean::clean_line};

use crate::folder_lock;

const FILE: &str = "server.running";

/// Most characters of a reload's outcome.
const MAX_OUTCOME: usize = 2000;

/// A running server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunningServer {
    /// Its process.
    pub(crate) pid: u32,
    /// The address for a process on this machine.
    pub(crate) url: String,
    /// Of the certificate that it presents, where it ends TLS.
    pub(crate) certificate: Option<Digest>,
    /// The number of reloads that it has begun. It writes this before it reads any settings. So settings that a reader
    /// of this file wrote before are part of all later reloads.
    pub(crate) begun: u32,
    /// The number of reloads that it has ended.
    pub(crate) reloads: u32,
    /// The outcome of the last reload: a text for the operator, or the reason of the refusal.
    pub(crate) reloaded: Result<String, String>,
}

impl RunningServer {
    /// This process, which listens there.
    pub(crate) fn here(listen: SocketAddr, certificate: Option<[u8; 32]>) -> Self {
        let mut address = listen;
        match address.ip().to_canonical() {
            ip if !ip.is_unspecified() => {}
            ip if ip.is_ipv4() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            _ => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        }
        let scheme = if certificate.is_some() {
            "https"
        } else {
            "http"
        };
        Self {
            pid: std::process::id(),
            url: format!("{scheme}://{address}"),
            certificate: certificate.and_then(|digest| Digest::from_slice(&digest)),
            begun: 0,
            reloads: 0,
            reloaded: Ok(String::new()),
        }
    }

    /// The server that runs on this folder.
    ///
    /// # Errors
    /// Fails if no server runs, or it has not started completely.
    pub(crate) fn of(folder: &Path) -> anyhow::Result<Self> {
        let place = folder.display();
        if !folder_lock::is_taken(folder)? {
            bail!("no server runs on {place}: start it with gantry-server run");
        }
        match fs::read_to_string(folder.join(FILE)) {
            Ok(text) => text.parse(),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!("the server on {place} is not up yet: try again in a moment")
            }
            Err(error) => Err(error).with_context(|| format!("{place}/{FILE} cannot be read")),
        }
    }

    /// Writes the state for the verbs.
    ///
    /// # Errors
    /// Fails if it cannot be written. The verbs then still read the state before.
    pub(crate) fn tell(&self, folder: &Path) -> anyhow::Result<()> {
        let (path, unfinished) = (folder.join(FILE), folder.join(format!("{FILE}.new")));
        let put = || -> io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(self.to_string().as_bytes())?;
            fs::rename(&unfinished, &path)
        };
        put().with_context(|| format!("{} cannot be written", path.display()))
    }
}

/// Takes away what an earlier server told.
///
/// # Errors
/// Fails if the file cannot be removed.
pub(crate) fn forget(folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(FILE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be removed", path.display()))
        }
        _ => Ok(()),
    }
}

/// One thing a line.
impl fmt::Display for RunningServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pid {}", self.pid)?;
        writeln!(f, "url {}", self.url)?;
        if let Some(certificate) = &self.certificate {
            writeln!(f, "certificate {certificate}")?;
        }
        writeln!(f, "begun {}", self.begun)?;
        let (word, said) = match &self.reloaded {
            Ok(said) => ("done", said),
            Err(why) => ("refused", why),
        };
        let mut line = format!("reload {} {word}", self.reloads);
        if !said.is_empty() {
            write!(line, " {}", clean_line(said, MAX_OUTCOME))?;
        }
        writeln!(f, "{line}")
    }
}

impl FromStr for RunningServer {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let value = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(name, _)| *name == key).map(|(_, value)| value)
        };
        let wrong = || anyhow!("{FILE} was written by another version of gantry-server");
        let mut reload = value("reload").ok_or_else(wrong)?.splitn(3, ' ');
        let (reloads, word, said) = (reload.next(), reload.next(), reload.next());
        let said = said.unwrap_or_default().to_owned();
        let count = |text: Option<&str>| text.and_then(|text| text.parse().ok()).ok_or_else(wrong);
        let certificate = value("certificate").map(|hex| Digest::from_hex(hex).ok_or_else(wrong));
        Ok(Self {
            pid: value("pid")
                .and_then(|pid| pid.parse().ok())
                .ok_or_else(wrong)?,
            url: value("url").ok_or_else(wrong)?.to_owned(),
            certificate: certificate.transpose()?,
            // A server of version 0.1.0 does not say it.
            begun: count(value("begun").or(reloads))?,
            reloads: count(reloads)?,
            reloaded: match word {
                Some("done") => Ok(said),
                Some("refused") => Err(said),
                _ => return Err(wrong()),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_tells_is_read_as_it_was_told() {
        let plain = RunningServer::here("0.0.0.0:7000".parse().expect("an address"), None);
        assert_eq!(plain.url, "http://127.0.0.1:7000");
        let refused = RunningServer {
            begun: 4,
            reloads: 3,
            reloaded: Err("two\nlines".to_owned()),
            ..RunningServer::here("[::]:7443".parse().expect("an address"), Some([7; 32]))
        };
        assert_eq!(refused.url, "https://[::1]:7443");
        assert_eq!(
            plain
                .to_string()
                .parse::<RunningServer>()
                .expect("it is one"),
            plain
        );
        let read: RunningServer = refused.to_string().parse().expect("it is one");
        assert_eq!(read.reloaded, Err("two⏎lines".to_owned()));
        assert_eq!((read.begun, read.reloads), (4, 3));
        assert_eq!(read.certificate, refused.certificate);
        let before: RunningServer = "pid 1\nurl http://[::1]:7000\nreload 2 done"
            .parse()
            .expect("it is one of an earlier version");
        assert_eq!((before.begun, before.reloads), (2, 2));
        assert!("pid 1\n".parse::<RunningServer>().is_err());
    }
}
