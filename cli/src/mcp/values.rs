//! The person's values for tool servers.

use shared_client::Client;
use shared_types::{Clock as _, SystemClock, human::ago};

use crate::{
    args::Values, extensions::MAX_CELL, models, render::clean::clean_line, screen::Screen,
    table::Table,
};

/// Carries out a command about the person's values for tool servers; without one, lists their names.
pub(super) async fn run(
    client: &Client,
    screen: Screen,
    command: Option<Values>,
) -> anyhow::Result<()> {
    match command {
        None => {
            let rows = client.tool_values().await?;
            if rows.is_empty() {
                screen.note("you have set none");
                return Ok(());
            }
            let now = SystemClock::new().now();
            let mut table = Table::new(["NAME", "HOST", "SINCE"]).whole(&[0]);
            for row in &rows {
                table.row([
                    clean_line(&row.name, MAX_CELL),
                    clean_line(&row.host, MAX_CELL),
                    ago(now.since(row.since)),
                ]);
            }
            screen.print(&table.show(screen.style(), screen.columns()))
        }
        Some(Values::Set { name, host }) => {
            let value = models::secret(&clean_line(&name, 64))?;
            client.put_tool_value(&name, Some((host, value))).await?;
            screen.line(&format!("set: {}", clean_line(&name, MAX_CELL)))
        }
        Some(Values::Remove { name }) => {
            client.put_tool_value(&name, None).await?;
            screen.line(&format!("removed: {}", clean_line(&name, MAX_CELL)))
        }
    }
}
