//! The architecture as a test: ARCHITECTURE.md says who may import whom and which library stays
//! in one place, `cargo metadata` says who does. What is not in the tables may not be.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// What the tables in ARCHITECTURE.md say.
struct Rules {
    /// Rank and permitted imports of each of our crates.
    crates: BTreeMap<String, (u32, Imports)>,
    /// The crates that may name a library.
    libraries: BTreeMap<String, BTreeSet<String>>,
}

enum Imports {
    Everything,
    Of(BTreeSet<String>),
}

/// One dependency that a manifest declares.
struct Edge {
    from: String,
    to: String,
    only_for_tests: bool,
}

#[test]
fn every_crate_of_the_workspace_has_a_rank_and_every_rank_a_crate() {
    let written: Vec<_> = rules().crates.into_keys().collect();
    assert_eq!(written, workspace().0, "ARCHITECTURE.md and Cargo.toml");
}

#[test]
fn imports_are_permitted_and_go_strictly_downward() {
    let rules = rules();
    let mut broken = Vec::new();
    for (name, (rank, imports)) in &rules.crates {
        let Imports::Of(imports) = imports else {
            continue;
        };
        for import in imports {
            if rules.crates[import].0 >= *rank {
                broken.push(format!(
                    "ARCHITECTURE.md lets {name} import {import}, which is not below it"
                ));
            }
        }
    }
    let (_, edges) = workspace();
    broken.extend(edges.iter().filter_map(|edge| rules.forbids_import(edge)));
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn libraries_stay_where_architecture_says() {
    let rules = rules();
    let (_, edges) = workspace();
    let broken: Vec<_> = edges
        .iter()
        .filter_map(|edge| rules.forbids_library(edge))
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    for (library, crates) in &rules.libraries {
        for name in crates {
            assert!(
                edges
                    .iter()
                    .any(|edge| edge.from == *name && edge.to == *library),
                "ARCHITECTURE.md lets {name} use {library}, and it does not"
            );
        }
    }
}

#[test]
fn an_upward_edge_a_sideways_edge_and_a_misplaced_library_are_named() {
    let rules = rules();
    let import = |from: &str, to: &str, only_for_tests| {
        rules.forbids_import(&Edge {
            from: from.into(),
            to: to.into(),
            only_for_tests,
        })
    };
    let upward = import("server-agent", "server-app", false).expect("it is upward");
    assert!(upward.contains("server-agent") && upward.contains("server-app"));
    assert!(import("server-router", "server-agent", false).is_some());
    assert!(import("server-app", "server-api", true).is_some());
    assert!(import("server-agent", "server-llm", false).is_none());
    assert!(import("server-router", "server-llm", true).is_none());
    let misplaced = rules.forbids_library(&Edge {
        from: "server-api".into(),
        to: "sqlx".into(),
        only_for_tests: true,
    });
    assert!(misplaced.expect("it is misplaced").contains("sqlx"));
}

#[test]
fn every_file_of_code_is_part_of_a_crate() {
    let (mut lost, mut found) = (Vec::new(), 0);
    for package in metadata()["packages"].as_array().expect("packages") {
        let manifest = text(&package["manifest_path"]);
        let targets = package["targets"].as_array().expect("targets");
        let roots: Vec<_> = targets
            .iter()
            .map(|target| text(&target["src_path"]))
            .collect();
        for root in &roots {
            let root = Path::new(root);
            found += 1;
            let folder = root.parent().expect("a folder");
            let is_whole = root
                .file_stem()
                .is_some_and(|stem| ["lib", "main"].iter().any(|it| stem == *it));
            let modules = if is_whole {
                folder.to_owned()
            } else {
                root.with_extension("")
            };
            lost.extend(undeclared(&modules, root, &roots));
        }
        assert!(!roots.is_empty(), "{manifest} has no target");
    }
    assert!(found > 20, "the targets are found");
    assert!(
        lost.is_empty(),
        "no file declares these as its modules: {lost:?}"
    );
}

/// The files below a folder of modules that no file beside or above them declares.
fn undeclared(folder: &Path, parent: &Path, roots: &[String]) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let mut lost = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry can be read").path()) {
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_root = roots.iter().any(|root| Path::new(root) == path);
        if path.is_dir() && path.join("Cargo.toml").exists() || is_root {
            continue;
        }
        if path.is_dir() {
            let above = path.with_extension("rs");
            if above.exists() && !roots.iter().any(|root| Path::new(root) == above) {
                lost.extend(undeclared(&path, &above, roots));
            }
        } else if path.extension().is_some_and(|it| it == "rs") {
            let declares = |file: &str| file.contains(&format!("mod {stem};"));
            let is_declared = declares(&read(parent))
                || roots.iter().any(|root| {
                    Path::new(root).parent() == Some(folder) && declares(&read(Path::new(root)))
                });
            if !is_declared {
                lost.push(path);
            }
        }
    }
    lost
}

#[test]
fn every_dependency_that_a_crate_declares_is_named_in_its_code() {
    let mut unused = Vec::new();
    for package in metadata()["packages"].as_array().expect("packages") {
        let manifest = text(&package["manifest_path"]);
        let code = Code::below(Path::new(&manifest).parent().expect("a folder"));
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let name = dependency["rename"]
                .as_str()
                .or(dependency["name"].as_str());
            let name = name.expect("a name");
            let renamed = RENAMED.iter().find(|(package, _)| *package == name);
            let name = renamed
                .map_or(name, |(_, library)| library)
                .replace('-', "_");
            let named = match dependency["kind"].as_str() {
                Some("dev") => names(&code.product, &name) || names(&code.tests, &name),
                Some("build") => names(&code.build, &name),
                _ => names(&code.product, &name),
            };
            let generated = GENERATED.contains(&(package["name"].as_str().unwrap_or(""), &name));
            if !named && !generated {
                unused.push(format!(
                    "{manifest} declares {name}, which its code does not name"
                ));
            }
        }
    }
    assert!(unused.is_empty(), "{}", unused.join("\n"));
}

#[test]
fn a_name_in_a_comment_or_in_a_longer_word_is_no_use_of_a_library() {
    assert!(names("use rand::Rng;", "rand") && names("    rand::random()", "rand"));
    assert!(!names("// rand::random()", "rand") && !names("use brand::Rng;", "rand"));
    assert!(!names("let rand = 4;", "rand"));
}

#[test]
fn every_promise_that_a_comment_cites_stands_in_the_contracts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let contracts = std::fs::read_to_string(root.join(CONTRACTS)).expect("the contracts");
    let headings: BTreeSet<_> = contracts
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| anchor(line.trim_start_matches(['#', ' '])))
        .collect();
    let mut cited = 0;
    for package in metadata()["packages"].as_array().expect("packages") {
        let manifest = text(&package["manifest_path"]);
        let code = Code::below(Path::new(&manifest).parent().expect("a folder"));
        for citation in code.product.split(&format!("{CONTRACTS}#")).skip(1) {
            let citation = citation.split([')', '\n']).next().unwrap_or_default();
            for name in citation
                .split([',', ' ', '#'])
                .filter(|name| !["", "to"].contains(name))
            {
                let name = name.trim_end_matches(['.', ':', ';']);
                assert!(
                    headings.contains(name),
                    "{manifest} cites {CONTRACTS}#{name}"
                );
                cited += 1;
            }
        }
    }
    assert!(cited > 40, "comments cite {cited} promises");
}

const CONTRACTS: &str = "docs/internals/contracts.md";

/// The anchor of a Markdown heading: letters, digits and hyphens.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || [' ', '-'].contains(letter))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// Libraries that go by another name than their package: package, library.
const RENAMED: [(&str, &str); 1] = [("rustls-webpki", "webpki")];

/// Libraries that only generated code names: crate, library.
const GENERATED: [(&str, &str); 1] = [("proto", "tonic_prost")];

/// The Rust code of one crate, by when it is compiled.
#[derive(Default)]
struct Code {
    product: String,
    tests: String,
    build: String,
}

impl Code {
    /// Reads a crate's folder, without the crates that lie in folders of it.
    fn below(folder: &Path) -> Self {
        let mut code = Self::default();
        code.read(folder, false);
        code
    }

    fn read(&mut self, folder: &Path, in_tests: bool) {
        for entry in std::fs::read_dir(folder).expect("a folder can be read") {
            let path = entry.expect("an entry can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let for_tests =
                in_tests || ["tests", "tests.rs", "benches", "examples"].contains(&name.as_ref());
            if path.is_dir() {
                let another = path.join("Cargo.toml").exists() || name == "target";
                if !another {
                    self.read(&path, for_tests);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a file can be read");
                let (product, tests) = text
                    .split_once("#[cfg(test)]\nmod tests {")
                    .unwrap_or((&text, ""));
                let whole = if for_tests {
                    &mut self.tests
                } else {
                    &mut self.product
                };
                whole.push_str(product);
                self.tests.push_str(tests);
                if name == "build.rs" {
                    self.build.push_str(&text);
                }
            }
        }
    }
}

/// Whether the code has a path that begins with this crate.
fn names(code: &str, library: &str) -> bool {
    let part_of_a_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .any(|line| {
            line.match_indices(library).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                let behind = &line[at + library.len()..];
                let path = behind.starts_with("::")
                    || line.trim_start().starts_with("use ") && !behind.starts_with(part_of_a_word);
                path && !before.is_some_and(part_of_a_word)
            })
        })
}

impl Rules {
    /// Says what is wrong with one of our crates using another.
    fn forbids_import(&self, edge: &Edge) -> Option<String> {
        let Edge { from, to, .. } = edge;
        let (rank, imports) = self.crates.get(from)?;
        let (lower, _) = self.crates.get(to)?;
        if lower >= rank {
            return Some(format!(
                "{from} (rank {rank}) may not import {to} (rank {lower}): imports go strictly downward"
            ));
        }
        match imports {
            Imports::Of(imports) if !edge.only_for_tests && !imports.contains(to) => Some(format!(
                "{from} may not import {to}: the table in ARCHITECTURE.md does not list it"
            )),
            _ => None,
        }
    }

    /// Says what is wrong with one of our crates using a library.
    fn forbids_library(&self, edge: &Edge) -> Option<String> {
        let Edge { from, to, .. } = edge;
        let crates = self.libraries.get(to)?;
        (!crates.contains(from)).then(|| {
            format!("{from} may not use {to} directly: ARCHITECTURE.md keeps it in {crates:?}")
        })
    }
}

/// Reads the two tables.
fn rules() -> Rules {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).expect("ARCHITECTURE.md can be read");
    let mut rules = Rules {
        crates: BTreeMap::new(),
        libraries: BTreeMap::new(),
    };
    for row in rows(&text, "| rank |") {
        let [rank, crates, imports] = &row[..] else {
            panic!("a row of the ranks has three columns: {row:?}");
        };
        let rank = rank.parse().expect("a rank is a number");
        for name in list(crates) {
            let imports = match imports.as_str() {
                "everything" => Imports::Everything,
                "nothing" => Imports::Of(BTreeSet::new()),
                some => Imports::Of(list(some)),
            };
            let before = rules.crates.insert(name.clone(), (rank, imports));
            assert!(before.is_none(), "{name} has two ranks in ARCHITECTURE.md");
        }
    }
    for row in rows(&text, "| library |") {
        let [libraries, crates, _why] = &row[..] else {
            panic!("a row of the libraries has three columns: {row:?}");
        };
        for library in list(libraries) {
            rules.libraries.insert(library, list(crates));
        }
    }
    rules
}

/// The cells of the table whose header begins so.
fn rows(text: &str, header: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| {
        let inner = line.trim().trim_matches('|');
        inner
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    let rows: Vec<_> = text
        .lines()
        .skip_while(|line| !line.starts_with(header))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(cells)
        .collect();
    assert!(!rows.is_empty(), "ARCHITECTURE.md has a table {header:?}");
    rows
}

fn list(cell: &str) -> BTreeSet<String> {
    cell.split(',').map(|name| name.trim().to_owned()).collect()
}

/// Our crates, sorted, and every dependency that they declare.
fn workspace() -> (Vec<String>, Vec<Edge>) {
    let (mut crates, mut edges) = (Vec::new(), Vec::new());
    for package in metadata()["packages"].as_array().expect("packages") {
        let from = text(&package["name"]);
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            edges.push(Edge {
                from: from.clone(),
                to: text(&dependency["name"]),
                only_for_tests: dependency["kind"] == "dev",
            });
        }
        crates.push(from);
    }
    crates.sort();
    (crates, edges)
}

/// The manifests of the workspace, as cargo reads them.
fn metadata() -> Value {
    let arguments = [
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ];
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
