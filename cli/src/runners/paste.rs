//! The line that is pasted on a machine without Gantry.
//!
//! It loads an archive from the server, compares its checksum with the one in the line, and then starts the
//! installation that the archive brings: nothing runs that the line does not vouch for, so that it does not matter
//! who vouches for the server's certificate. The token goes through a pipe from a builtin of the shell, which no
//! other user sees.

use shared_api::{JoinToken, RunnerArchive};
use shared_client::Client;

use crate::screen::Screen;

/// Prints the line for each kind of machine for which the server has the programs.
///
/// # Errors
/// Fails if standard output is closed.
pub(super) fn tell(client: &Client, screen: Screen, token: &JoinToken) -> anyhow::Result<()> {
    let (server, pinned) = (client.server(), client.is_pinned());
    for archive in sound(client, token)? {
        screen.note(&format!(
            "paste this in the folder on the other machine ({}) in which the runner is to work:",
            archive.arch
        ));
        let install = format!("echo {} | ", token.token);
        screen.line(&line(&server, pinned, archive, &install))?;
    }
    let (curl, wget) = programs(pinned);
    screen.note(&format!("(without curl: write {wget} for {curl})"));
    Ok(())
}

/// Prints the same for machines that get the token in another way than by a line.
///
/// # Errors
/// Fails if standard output is closed.
pub(super) fn tell_fleet(client: &Client, screen: Screen, token: &JoinToken) -> anyhow::Result<()> {
    for archive in sound(client, token)? {
        screen.note(&format!(
            "or this, with the same standard input, where gantry-runner is missing ({}):",
            archive.arch
        ));
        screen.line(&line(&client.server(), client.is_pinned(), archive, ""))?;
    }
    Ok(())
}

/// The archives, where each can stand in a command line.
fn sound<'a>(client: &Client, token: &'a JoinToken) -> anyhow::Result<&'a [RunnerArchive]> {
    if !token.archives.iter().all(is_sound) {
        let server = client.server();
        anyhow::bail!("failed to understand which programs {server} hands out: update gantry");
    }
    Ok(&token.archives)
}

/// One line for any POSIX shell, which ends with the exit code of the step that failed. Its subshell always removes the
/// downloaded file, and changes nothing in the person's shell. `token` is the command that pipes the join token to the
/// installer.
fn line(server: &str, pinned: bool, archive: &RunnerArchive, token: &str) -> String {
    let RunnerArchive { sha256, name, .. } = archive;
    let (curl, _) = programs(pinned);
    format!(
        "(s={sha256}; d=$(mktemp -d) && trap 'rm -rf \"$d\"' EXIT && {curl} {server}/install/$s/{name} >$d/r.tgz \
         && echo \"$s  $d/r.tgz\" | sha256sum -c && tar -xzf $d/r.tgz -C $d \
         && {token}$d/gantry-runner/gantry-runner install --server {server} -)"
    )
}

/// The commands of curl and wget that load a file to standard output. They need not trust a certificate that the
/// terminal knows by its fingerprint.
fn programs(pinned: bool) -> (&'static str, &'static str) {
    match pinned {
        true => ("curl -fsSk", "wget -qO- --no-check-certificate"),
        false => ("curl -fsS", "wget -qO-"),
    }
}

/// True if the server's texts are safe in a command line.
fn is_sound(archive: &RunnerArchive) -> bool {
    let plain = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
    };
    archive.sha256.len() == 64
        && [&archive.sha256, &archive.name, &archive.arch]
            .into_iter()
            .all(|text| plain(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(name: &str) -> RunnerArchive {
        RunnerArchive {
            arch: "x86_64".to_owned(),
            sha256: "ab".repeat(32),
            name: name.to_owned(),
            bytes: 1,
        }
    }

    #[test]
    fn the_line_runs_nothing_before_the_checksum_holds_and_the_token_is_no_argument() {
        let line = line(
            "https://server:7443",
            true,
            &archive("runner.tar.gz"),
            "echo gantry_join_x | ",
        );
        let steps: Vec<_> = line.split(" && ").collect();
        assert!(steps[0].starts_with("(s=abab"), "{line}");
        assert!(
            steps[2].starts_with("curl -fsSk https://server:7443/install/$s/"),
            "{line}"
        );
        assert!(steps[3].ends_with("| sha256sum -c"), "{line}");
        assert!(steps[5].starts_with("echo gantry_join_x | "), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }

    #[test]
    fn what_a_server_says_cannot_be_a_command() {
        assert!(is_sound(&archive("gantry-runner-x86_64-linux.tar.gz")));
        for name in ["a; rm -rf /", "$(id)", "a b", "a/../b", "a\nb"] {
            assert!(!is_sound(&archive(name)), "{name}");
        }
    }
}
