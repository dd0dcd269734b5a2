//! The source of a skill: a folder, a file, or an address.

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;
use shared_api::{ExtensionKind, PutExtension};
use shared_extensions::Front;

/// Most bytes of all files of a skill, unpacked. The server takes no more.
const MAX_BYTES: usize = 2 * 1024 * 1024 - 64 * 1024;

/// Most bytes that are downloaded.
const MAX_DOWNLOAD: usize = 4 * 1024 * 1024;

/// Most files of a skill, and how deep folders go.
const MAX_FILES: usize = 256;
const MAX_DEPTH: usize = 8;

/// The name of the file with the instructions.
const SKILL_FILE: &str = "SKILL.md";

/// The file that keeps the folder out of a repository.
const GITIGNORE: &str = ".gitignore";

/// A skill as its source has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SkillSource {
    pub(super) name: String,
    pub(super) text: String,
    /// The other files, by their paths.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    source: String,
}

impl SkillSource {
    /// Reads a folder, a `SKILL.md`, or the address of one or of a `.tar.gz`.
    pub(super) async fn read(source: &str) -> anyhow::Result<Self> {
        if source.contains("://") {
            let bytes = shared_client::download(source, MAX_DOWNLOAD).await?;
            let files = match bytes.starts_with(&[0x1f, 0x8b]) {
                true => unpacked_within(GzDecoder::new(bytes.as_slice()))?,
                false => BTreeMap::from([(SKILL_FILE.to_owned(), bytes)]),
            };
            return Self::of(below_one_folder(files), source, None);
        }
        let path = fs::canonicalize(source).with_context(|| format!("failed to find {source}"))?;
        let folder = match path.is_file() {
            true => path.parent().map(Path::to_path_buf).unwrap_or_default(),
            false => path,
        };
        let mut files = BTreeMap::new();
        read_folder(&folder, &PathBuf::new(), &mut files, 0)?;
        let name = folder.file_name().and_then(|name| name.to_str());
        Self::of(files, &folder.display().to_string(), name)
    }

    fn of(
        mut files: BTreeMap<String, Vec<u8>>,
        source: &str,
        folder: Option<&str>,
    ) -> anyhow::Result<Self> {
        let text = files
            .remove(SKILL_FILE)
            .with_context(|| format!("{source} has no {SKILL_FILE}"))?;
        let text = String::from_utf8(text)
            .with_context(|| format!("the {SKILL_FILE} of {source} is no UTF-8"))?;
        let front = Front::read(&text)
            .with_context(|| format!("the {SKILL_FILE} of {source} cannot be read"))?;
        let name = front.text("name").or_else(|| folder.map(str::to_owned));
        Ok(Self {
            name: name.with_context(|| format!("the {SKILL_FILE} of {source} has no name"))?,
            text,
            files,
            source: source.to_owned(),
        })
    }

    /// The message that registers it.
    pub(super) fn put(
        &self,
        for_everyone: bool,
        replaces: Option<shared_types::Digest>,
    ) -> PutExtension {
        PutExtension {
            kind: ExtensionKind::Skill,
            name: self.name.clone(),
            text: self.text.clone(),
            packed: (!self.files.is_empty()).then(|| STANDARD.encode(packed(&self.files))),
            source: self.source.clone(),
            for_everyone,
            replaces,
        }
    }
}

/// Reads the files of a folder. A link is refused: it may lead out of the skill.
fn read_folder(
    root: &Path,
    below: &Path,
    files: &mut BTreeMap<String, Vec<u8>>,
    depth: usize,
) -> anyhow::Result<()> {
    ensure!(
        depth <= MAX_DEPTH,
        "{} has folders more than {MAX_DEPTH} deep",
        root.display()
    );
    let folder = root.join(below);
    let entries =
        fs::read_dir(&folder).with_context(|| format!("failed to read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let Some(name) = name.to_str() else {
            bail!("a name in {} is no UTF-8", folder.display());
        };
        let path = below.join(name);
        if name.starts_with(".git") {
            continue;
        }
        if kind.is_dir() {
            read_folder(root, &path, files, depth + 1)?;
        } else if kind.is_file() {
            let content = fs::read(entry.path())
                .with_context(|| format!("failed to read {}", path.display()))?;
            add(files, &path, content)?;
        } else {
            bail!(
                "{} is a link or no file; a skill has only files and folders",
                root.join(&path).display()
            );
        }
    }
    Ok(())
}

fn add(files: &mut BTreeMap<String, Vec<u8>>, path: &Path, content: Vec<u8>) -> anyhow::Result<()> {
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let name = path
        .to_str()
        .filter(|name| is_plain && !name.contains(char::is_control));
    let name = name.with_context(|| format!("{path:?} is no path that a skill may have"))?;
    files.insert(name.to_owned(), content);
    let bytes: usize = files.values().map(Vec::len).sum();
    ensure!(
        files.len() <= MAX_FILES,
        "it has more than {MAX_FILES} files"
    );
    ensure!(
        bytes <= MAX_BYTES,
        "its files have more than {MAX_BYTES} bytes"
    );
    Ok(())
}

/// The files of an archive from [`packed`].
pub(super) fn unpacked(archive: &[u8]) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = unpacked_within(archive)?;
    files.remove(GITIGNORE);
    Ok(files)
}

/// The files of a tar archive, however large it says that they are: no more than a skill may have are read.
fn unpacked_within(archive: impl std::io::Read) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    // The headers and the padding of each file take room beside its content.
    let bound = MAX_BYTES as u64 + (MAX_FILES as u64 + 2) * 2048;
    let mut archive = tar::Archive::new(archive.take(bound));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() {
            continue;
        }
        let path = entry.path()?.into_owned();
        ensure!(
            kind.is_file(),
            "{} is a link or no file; a skill has only files and folders",
            path.display()
        );
        let mut content = Vec::new();
        entry
            .by_ref()
            .take(MAX_BYTES as u64 + 1)
            .read_to_end(&mut content)?;
        let path: PathBuf = path
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect();
        add(&mut files, &path, content)?;
    }
    Ok(files)
}

/// The files of an archive whose files are all in one folder, relative to that.
fn below_one_folder(files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    if files.contains_key(SKILL_FILE) {
        return files;
    }
    let skill = files
        .keys()
        .filter(|path| path.ends_with("/SKILL.md"))
        .min_by_key(|path| path.len());
    let Some(folder) = skill
        .and_then(|path| path.strip_suffix(SKILL_FILE))
        .map(str::to_owned)
    else {
        return files;
    };
    let below = files.into_iter().filter_map(|(path, content)| {
        let path = path.strip_prefix(&folder)?.to_owned();
        Some((path, content))
    });
    below.collect()
}

/// A tar archive of these files, the same for the same files.
fn packed(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    // On a runner the folder lies in the person's project, which is not to have it.
    let ignores = (GITIGNORE.to_owned(), b"*\n".to_vec());
    let ignores = (!files.contains_key(GITIGNORE)).then_some((&ignores.0, &ignores.1));
    for (path, content) in files.iter().chain(ignores) {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        // A script says in its first line that it is one.
        header.set_mode(if content.starts_with(b"#!") {
            0o755
        } else {
            0o644
        });
        header.set_mtime(0);
        // Writing into memory does not fail, and the paths were checked.
        let _ = builder.append_data(&mut header, path, content.as_slice());
    }
    builder.into_inner().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const TEXT: &str = "---\nname: pdf\ndescription: d\n---\nGo";

    #[tokio::test]
    async fn a_folder_is_read_with_its_files_and_packed_the_same_each_time() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("pdf");
        fs::create_dir_all(folder.join("scripts")).unwrap();
        fs::write(folder.join(SKILL_FILE), TEXT).unwrap();
        fs::write(folder.join("scripts/fill.py"), "#!/usr/bin/python3").unwrap();
        let read = SkillSource::read(folder.to_str().unwrap()).await.unwrap();
        assert_eq!((read.name.as_str(), read.files.len()), ("pdf", 1));
        let archive = packed(&read.files);
        assert_eq!(archive, packed(&read.files));
        assert_eq!(unpacked(&archive).unwrap(), read.files);
    }

    #[tokio::test]
    async fn a_link_in_a_skill_is_refused() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(SKILL_FILE), TEXT).unwrap();
        symlink("/etc/passwd", home.path().join("forms.md")).unwrap();
        let refused = SkillSource::read(home.path().to_str().unwrap())
            .await
            .unwrap_err();
        assert!(
            refused.to_string().contains("a link or no file"),
            "{refused}"
        );
    }

    #[test]
    fn an_archive_that_unpacks_to_more_than_a_skill_may_have_is_refused() {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        let large = vec![0; MAX_BYTES + 1];
        header.set_size(large.len() as u64);
        builder
            .append_data(&mut header, "SKILL.md", large.as_slice())
            .unwrap();
        assert!(unpacked_within(builder.into_inner().unwrap().as_slice()).is_err());
    }

    #[test]
    fn a_path_that_leads_out_of_the_skill_is_refused() {
        let mut files = BTreeMap::new();
        for path in ["../x", "/etc/x", "a/../../x", "a\u{1b}"] {
            assert!(
                add(&mut files, Path::new(path), Vec::new()).is_err(),
                "{path}"
            );
        }
    }
}
