//! The architecture as a test: ARCHITECTURE.md says who may import whom and which library stays
//! in one place, `cargo metadata` says who does. What is not in the tables may not be.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
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
    assert!(import("server-agent", "server-store", false).is_some());
    assert!(import("server-app", "server-api", true).is_some());
    assert!(import("server-agent", "server-llm", false).is_none());
    assert!(import("server-agent", "server-store", true).is_none());
    let misplaced = rules.forbids_library(&Edge {
        from: "server-api".into(),
        to: "sqlx".into(),
        only_for_tests: true,
    });
    assert!(misplaced.expect("it is misplaced").contains("sqlx"));
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
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let (mut crates, mut edges) = (Vec::new(), Vec::new());
    for package in metadata["packages"].as_array().expect("packages") {
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
