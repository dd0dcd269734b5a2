//! The dashboards, held to Grafana's own schema. Grafana has no package where `make test` installs its tools; npm
//! has its schema, as types.

use std::path::Path;

use super::openapi_tools::{run, tools};

/// What a dashboard of ours may be: its panels have the options of their kind.
const KNOWN: &str = r#"
import type { Dashboard, Panel } from "@grafana/schema";
import type { Options as Stat } from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type { FieldConfig as Line, Options as Lines } from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

type Source = NonNullable<Panel["fieldConfig"]>;
type Fields<Custom> = Omit<Source, "defaults"> & { defaults: Omit<Source["defaults"], "custom"> & { custom?: Custom } };
type Of<Kind, Options, Custom> = Omit<Panel, "type" | "options" | "fieldConfig"> & {
    type: Kind;
    options: Partial<Options>;
    fieldConfig: Fields<Custom>;
};

// In JSON a word of an enumeration is a text.
type Json<T> = T extends string ? `${T}` : T extends (infer E)[] ? Json<E>[] : T extends object ? { [K in keyof T]: Json<T[K]> } : T;
type KnownPanel = Json<Of<"stat", Stat, never> | Of<"timeseries", Lines, Line>>;
type KnownDashboard = Json<Omit<Dashboard, "panels">> & { panels: KnownPanel[] };

// @ts-expect-error there is no such option
export const option: Json<Partial<Stat>> = { colourMode: "value" };
// @ts-expect-error there is no such word
export const word: Json<Partial<Stat>> = { colorMode: "values" };
// @ts-expect-error it is said whether there is a legend
export const legend: Json<Lines>["legend"] = { displayMode: "list", placement: "bottom", calcs: [] };
"#;

#[test]
fn every_dashboard_is_one_by_the_schema_of_grafana() {
    let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let dashboards = std::fs::read_dir(repository.join("deploy/grafana")).expect("a folder");
    let mut checked = KNOWN.to_owned();
    for (number, dashboard) in dashboards.enumerate() {
        let path = dashboard.expect("an entry").path();
        let json = std::fs::read_to_string(&path).expect("a dashboard");
        let declared = format!(
            "// {}\nexport const d{number}: KnownDashboard =",
            path.display()
        );
        checked.push_str(&format!("{declared} {json};\n"));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("dashboards.ts"), checked).expect("it is written");
    let modules = tools().join("..");
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).expect("a link");
    let how = [
        "--strict",
        "--noEmit",
        "--skipLibCheck",
        "--module",
        "nodenext",
        "dashboards.ts",
    ];
    let checked = run("tsc", &how, folder.path());
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stdout)
    );
}
