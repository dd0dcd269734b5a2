//! The reference of `gantry.toml`, made from the structs that read it: a page, and an example of the file.
//!
//! The text of a setting is its doc comment. In brackets at its end stands what counts where the file says nothing.

use std::{fmt::Write as _, fs, io, path::Path};

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::File;

const PAGE: &str = "\
# Settings of the server

<!-- Made by deploy/reference from server/src/settings: change that, not this page. -->

All settings of `gantry.toml`. The server reads the file in its home (`~/.gantry/gantry.toml`), or the one that
`--config` or `GANTRY_CONFIG` names. Flags and the environment come before the file: [gantry-server](gantry-server.md).
A key that the server does not know is an error that names its line; `gantry-server check-config` tells whether all is
well. What the settings are for: [configuration](../configuration.md). All of them with their defaults, to begin with:
`deploy/gantry.example.toml`. A runner has no such file: [gantry-runner](gantry-runner.md).

Times end in `_ms` for milliseconds and `_s` for seconds.
";

const EXAMPLE: &str = "\
# Every setting of gantry-server. Copy this file to ~/.gantry/gantry.toml, and take the # away before what you set.
# Numbers are the defaults, other values examples. Made by deploy/reference from server/src/settings.
";

/// A section of the file, or a setting in one.
struct ReferenceEntry<'a> {
    name: &'a str,
    /// Its text without the default.
    text: String,
    default: Option<String>,
    schema: &'a Value,
}

/// Writes `FOLDER/reference/configuration.md` and `FOLDER/gantry.example.toml`.
///
/// # Errors
/// Fails if one of them cannot be written.
pub(crate) fn write(folder: &Path) -> io::Result<()> {
    let schema = schema();
    fs::create_dir_all(folder.join("reference"))?;
    fs::write(folder.join("reference/configuration.md"), page(&schema))?;
    fs::write(folder.join("gantry.example.toml"), example(&schema))
}

fn schema() -> Value {
    let settings = SchemaSettings::default().with(|settings| settings.inline_subschemas = true);
    settings
        .into_generator()
        .into_root_schema_for::<File>()
        .to_value()
}

fn page(schema: &Value) -> String {
    let mut page = PAGE.to_owned();
    for section in entries(schema) {
        table(&mut page, section.name, &section.text, section.schema);
        for inner in tables(section.schema) {
            let name = format!("{}.{}", section.name, inner.name);
            table(&mut page, &name, &inner.text, inner.schema);
        }
        for list in lists(section.schema) {
            let name = format!("{}.{}", section.name, list.name);
            let text = format!("{} Each is a table `[[{name}]]`.", list.text);
            table(&mut page, &name, &text, &list.schema["items"]);
        }
    }
    page
}

fn table(page: &mut String, name: &str, text: &str, schema: &Value) {
    let _ = write!(
        page,
        "\n## {name}\n\n{text}\n\n| setting | value | meaning | default |\n|---|---|---|---|\n"
    );
    for ReferenceEntry {
        name,
        text,
        default,
        schema,
    } in settings(schema)
    {
        let default = default.unwrap_or_default();
        let _ = writeln!(page, "| `{name}` | {} | {text} | {default} |", kind(schema));
    }
}

fn example(schema: &Value) -> String {
    let mut example = EXAMPLE.to_owned();
    for section in entries(schema) {
        example += "\n";
        comment(&mut example, &section.text);
        let _ = writeln!(example, "[{}]", section.name);
        lines(&mut example, section.schema);
        for inner in tables(section.schema) {
            example += "\n";
            comment(&mut example, &inner.text);
            let _ = writeln!(example, "[{}.{}]", section.name, inner.name);
            lines(&mut example, inner.schema);
        }
        for list in lists(section.schema) {
            example += "\n";
            comment(&mut example, &list.text);
            let _ = writeln!(example, "# [[{}.{}]]", section.name, list.name);
            lines(&mut example, &list.schema["items"]);
        }
    }
    example
}

fn lines(example: &mut String, schema: &Value) {
    for entry in settings(schema) {
        let default = entry.default.as_deref().unwrap_or_default();
        comment(example, &format!("{} [default: {default}]", entry.text));
        let _ = writeln!(example, "# {} = {}", entry.name, entry.value());
    }
}

/// Adds a text as comments that fit into a terminal.
fn comment(example: &mut String, text: &str) {
    const WIDTH: usize = 110;
    let mut line = "#".to_owned();
    for word in text.split(' ') {
        if line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(example, "{line}");
            line = "#".to_owned();
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(example, "{line}");
}

/// The properties of an object in the schema, by name.
fn entries(schema: &Value) -> impl Iterator<Item = ReferenceEntry<'_>> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(|(name, schema)| {
        let words: Vec<_> = schema["description"]
            .as_str()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let text = words.join(" ");
        let (text, default) = match text.trim_end_matches('.').strip_suffix(']') {
            Some(text) => text.split_once(" [default: ").unwrap_or((text, "")),
            None => (text.as_str(), ""),
        };
        let sentence = format!("{}.", text.trim_end_matches('.'));
        let default = (!default.is_empty()).then(|| default.to_owned());
        ReferenceEntry {
            name,
            text: sentence,
            default,
            schema,
        }
    })
}

/// The settings of a section that are values.
fn settings(schema: &Value) -> impl Iterator<Item = ReferenceEntry<'_>> {
    entries(schema).filter(|entry| !entry.is_list() && !entry.is_table())
}

/// The settings of a section that are tables of their own.
fn tables(schema: &Value) -> impl Iterator<Item = ReferenceEntry<'_>> {
    entries(schema).filter(ReferenceEntry::is_table)
}

/// The settings of a section that are lists of tables.
fn lists(schema: &Value) -> impl Iterator<Item = ReferenceEntry<'_>> {
    entries(schema).filter(ReferenceEntry::is_list)
}

impl ReferenceEntry<'_> {
    /// True for a list of tables.
    fn is_list(&self) -> bool {
        self.schema["items"]["properties"].is_object()
    }

    /// True for a table.
    fn is_table(&self) -> bool {
        self.schema["properties"].is_object()
    }

    /// A value to write behind its name: the default where that is a number or a truth, else an example.
    fn value(&self) -> String {
        let plain = self.plain_default();
        plain.map_or_else(|| self.schema["examples"][0].to_string(), str::to_owned)
    }

    fn plain_default(&self) -> Option<&str> {
        let default = self.default.as_deref();
        default.filter(|text| text.parse::<f64>().is_ok() || text.parse::<bool>().is_ok())
    }
}

/// The kind of value that a setting takes.
fn kind(schema: &Value) -> &'static str {
    let kind = &schema["type"];
    // One that may be absent has the kind `null` beside its own.
    match kind.as_str().or(kind[0].as_str()) {
        Some("integer" | "number") => "number",
        Some("boolean") => "`true` or `false`",
        Some("array") => "list of texts",
        _ => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Environment, ModelChoice, RunArgs, ServerSettings, Tls},
        *,
    };

    #[test]
    fn each_setting_has_a_text_a_default_and_a_value_that_the_server_takes() {
        let schema = schema();
        for section in entries(&schema) {
            assert!(section.text.len() > 1, "{} has a text", section.name);
            let lists = lists(section.schema);
            let of_lists = lists.flat_map(|list| settings(&list.schema["items"]));
            let of_tables = tables(section.schema).flat_map(|table| settings(table.schema));
            for entry in settings(section.schema).chain(of_lists).chain(of_tables) {
                let name = format!("[{}] {}", section.name, entry.name);
                assert!(entry.text.len() > 1, "{name} has a text");
                assert!(entry.default.is_some(), "{name} tells its default");
                assert_ne!(entry.value(), "null", "{name} has an example");
            }
        }
        let example = example(&schema);
        let set = example.lines().map(|line| match line.strip_prefix("# ") {
            Some(setting) if is_setting(setting) => setting,
            Some(_) => "",
            None => line,
        });
        let set = set.collect::<Vec<_>>().join("\n");
        let read: Result<File, _> = toml::from_str(&set);
        assert!(read.is_ok(), "{:?}\n{set}", read.err());
    }

    fn is_setting(line: &str) -> bool {
        let name = line.split_once(" = ").map(|(name, _)| name);
        line.starts_with("[[") || name.is_some_and(|name| !name.contains(' '))
    }

    #[test]
    fn the_defaults_that_are_told_are_those_that_count() {
        let schema = schema();
        let mut told = String::new();
        for section in entries(&schema) {
            let _ = writeln!(told, "[{}]", section.name);
            for entry in entries(section.schema) {
                if let Some(default) = entry.plain_default() {
                    let _ = writeln!(told, "{} = {default}", entry.name);
                }
            }
        }
        // Waits for a model count where there is one; the steps that nothing sets are the engine's.
        let model = "[model]\nname = \"m\"\nbase_url = \"http://127.0.0.1:1/v1\"\n";
        assert!(
            told.contains("steps = 50\n") && told.contains("[model]\n"),
            "{told}"
        );
        let told = told.replace("steps = 50\n", "").replace("[model]\n", model);
        assert_eq!(resolved(&told), resolved(model), "{told}");
    }

    fn resolved(toml: &str) -> String {
        let home = tempfile::tempdir().expect("a folder");
        fs::write(home.path().join("gantry.toml"), toml).expect("it is written");
        let environment = Environment::default();
        let it = ServerSettings::resolve(RunArgs::default(), environment, None, home.path());
        let it = it.expect("the defaults are fine");
        let ModelChoice::Servers { first, .. } = it.app.model else {
            panic!("a model is named");
        };
        let waits = (first.options.first_byte_within, first.options.idle_at_most);
        let tls = matches!(it.tls, Tls::Off);
        let of_links = (
            it.limits,
            it.app.link,
            it.app.ephemeral_silence,
            it.app.turns,
        );
        format!(
            "{:#?}",
            (
                it.behind_proxy,
                it.drain,
                tls,
                of_links,
                it.app.user_limits,
                it.app.web,
                waits
            )
        )
    }
}
