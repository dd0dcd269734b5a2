//! Images that go with a message: files of this machine, named with `--image` or with an `@` in what was typed.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use shared_types::{
    Digest, ImageFormat,
    limits::{MAX_IMAGE_BYTES, MAX_IMAGES_OF_MESSAGE},
};

use super::{Chat, MAX_LINE};
use crate::{render::clean::clean_line, screen::Screen};

/// The images of these files, and of those that a person named in what was typed.
pub(super) fn chosen(
    screen: Screen,
    typed: &str,
    files: &[PathBuf],
) -> anyhow::Result<Vec<Vec<u8>>> {
    let chosen = read_chosen(typed, files)?;
    chosen.notes.iter().for_each(|note| screen.note(note));
    Ok(chosen.images)
}

/// Images that a person chose.
pub(crate) struct ChosenImages {
    /// The bytes of each.
    pub(crate) images: Vec<Vec<u8>>,
    /// Words on names that are no file of this machine.
    pub(crate) notes: Vec<String>,
}

/// Reads the images of these files, and of those that a person named in what was typed.
///
/// # Errors
/// Fails where an image cannot be read, or where there are too many.
pub(crate) fn read_chosen(typed: &str, files: &[PathBuf]) -> anyhow::Result<ChosenImages> {
    let (here, elsewhere) = named(typed);
    let notes = elsewhere.into_iter().map(|name| {
        let name = clean_line(name, MAX_LINE);
        format!(
            "{name} is not on this machine, so only its name is sent; the model may read it on the runner"
        )
    });
    let notes = notes.collect();
    let here = here.into_iter().map(Path::new);
    let files: Vec<_> = files.iter().map(PathBuf::as_path).chain(here).collect();
    if files.len() > MAX_IMAGES_OF_MESSAGE {
        bail!(
            "these are {} images; at most {MAX_IMAGES_OF_MESSAGE} can be sent at once",
            files.len()
        );
    }
    let images = files.into_iter().map(read).collect::<Result<_, _>>()?;
    Ok(ChosenImages { images, notes })
}

/// True if a person named an image of this machine in this line.
pub(super) fn are_named(line: &str) -> bool {
    !named(line).0.is_empty()
}

/// Adds images to the session.
pub(super) async fn added(chat: &Chat, images: Vec<Vec<u8>>) -> anyhow::Result<Vec<Digest>> {
    let mut digests = Vec::with_capacity(images.len());
    for image in images {
        let added = chat.client.add_image(chat.session.id, image).await?;
        digests.push(added.digest);
    }
    Ok(digests)
}

/// The images that a person named in a line with `@shot.png` or `@"a shot.png"`, and that are on this machine; and those
/// that are not.
fn named(line: &str) -> (Vec<&str>, Vec<&str>) {
    let mut names: Vec<&str> = Vec::new();
    for (at, _) in line.match_indices('@') {
        let begins_word = line[..at]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
        let rest = &line[at + 1..];
        let name = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next(),
            None => rest
                .split_whitespace()
                .next()
                .filter(|_| !rest.starts_with(char::is_whitespace)),
        };
        let name = name.unwrap_or_default();
        let name = match rest.starts_with('"') {
            true => name,
            // The end of a sentence.
            false => name.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']),
        };
        if begins_word && ImageFormat::of_path(name).is_some() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
        .into_iter()
        .partition(|name| Path::new(name).is_file())
}

/// The bytes of an image that a model reads.
fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = file.display();
    let failed = || format!("failed to read {shown}");
    let open = std::fs::File::open(file).with_context(failed)?;
    let mut bytes = Vec::new();
    open.take(MAX_IMAGE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(failed)?;
    if bytes.len() > MAX_IMAGE_BYTES {
        bail!(
            "{shown} is larger than {} MiB: send a smaller image",
            MAX_IMAGE_BYTES / 1024 / 1024
        );
    }
    if ImageFormat::of(&bytes).is_none() {
        bail!("{shown} is no image of {}", ImageFormat::NAMES);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_named_by_a_word_that_begins_with_an_at() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = folder.path().join("a shot.PNG");
        std::fs::write(&here, "").expect("a file");
        let here = here.to_str().expect("text");
        let line = format!("see @\"{here}\", @gone.jpg. me@example.png @ @notes.md @\"no end.gif");
        assert_eq!(named(&line), (vec![here], vec!["gone.jpg", "no end.gif"]));
        assert_eq!(
            named(&format!("@gone.png @gone.png @{}", "x".repeat(9))),
            (vec![], vec!["gone.png"])
        );
    }

    #[test]
    fn only_images_of_bounded_size_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, bytes: &[u8]| {
            let file = folder.path().join(name);
            std::fs::write(&file, bytes).expect("a file");
            file
        };
        let png = b"\x89PNG\r\n\x1a\n";
        assert_eq!(read(&write("a.png", png)).expect("it is read"), png);
        let mut large = png.to_vec();
        large.resize(MAX_IMAGE_BYTES + 1, 0);
        for (file, why) in [
            (write("large.png", &large), "larger than 5 MiB"),
            (write("text.png", b"hello"), "no image of PNG"),
            (folder.path().join("none.png"), "failed to read"),
        ] {
            let error = read(&file).expect_err("it is refused");
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
    }
}
