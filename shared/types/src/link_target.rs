//! The target of a symbolic link, judged by its text.

use std::path::{Component, Path};

/// True if a link at this path, relative to a folder, leads to something in that folder. The target
/// may go up only at its beginning. Behind a name, which may be a link itself, `..` could lead
/// anywhere.
pub fn leads_into_its_folder(path: &Path, target: &str) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    let mut goes_down = false;
    for part in Path::new(target).components() {
        match part {
            Component::Normal(_) => goes_down = true,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 && !goes_down => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    !target.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_into_its_folder_by_its_text_or_counts_as_leading_out() {
        for (path, target) in [
            ("a", "b"),
            ("d/a", "../b"),
            ("a", "./d/b"),
            ("d/e/a", "../../b"),
        ] {
            let path = Path::new(path);
            assert!(leads_into_its_folder(path, target), "{path:?} to {target}");
        }
        for (path, target) in [
            ("a", "../b"),
            ("a", "/b"),
            ("d/a", "../../b"),
            ("a", "d/../../b"),
            // `d` may be a link.
            ("a", "d/../b"),
            ("d/a", "../e/../b"),
            ("a", ""),
        ] {
            let path = Path::new(path);
            assert!(!leads_into_its_folder(path, target), "{path:?} to {target}");
        }
    }
}
