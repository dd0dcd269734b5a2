//! Links in the project's own pages lead somewhere: to a file that is there, and to a heading in it.

use std::path::{Path, PathBuf};

/// Pages with links, from the project's folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
    pages
}

/// The targets of a page's links to other pages, and to headings.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let targets = page.split("](").skip(1);
    let targets = targets.filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter(|target| !target.contains("://"))
}

/// The anchors of a page's headings, as hosts of Markdown make them.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let letters = words.chars();
        let kept = letters.filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.map(|letter| if letter == ' ' { '-' } else { letter })
            .collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_in_the_documents_leads_to_a_page_and_a_heading() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["", "docs", "docs/internals", "migrations", "helm/gantry"];
    let mut followed = 0;
    for path in folders.iter().flat_map(|folder| pages(&root.join(folder))) {
        let text = std::fs::read_to_string(&path).expect("a page");
        for link in links(&text) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.with_file_name("").join(file),
            };
            let shown = format!("{} links to {link}", path.display());
            assert!(target.exists(), "{shown}: there is no such file");
            if !heading.is_empty() {
                let page = std::fs::read_to_string(&target).expect("a page");
                let found = anchors(&page).iter().any(|anchor| anchor == heading);
                assert!(found, "{shown}: there is no such heading");
            }
            followed += 1;
        }
    }
    assert!(followed > 20, "{followed} links");
}
