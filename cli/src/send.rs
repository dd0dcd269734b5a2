//! Sending a message to a session without watching it.

use shared_client::Client;

use crate::{args, chat, pick, screen::Screen};

/// Sends the message, and says what became of it.
pub(crate) async fn run(client: &Client, screen: Screen, args: args::Send) -> anyhow::Result<()> {
    let text = chat::whole_message(screen, &args.text).await?;
    let session = pick::session_id(client, &args.session).await?;
    let client_id = client.new_client_id();
    let sending = client.send_while_working(session, &text, args.while_working(), &client_id);
    let sent = sending.await?;
    if args.json {
        return screen.json(&sent);
    }
    screen.line(match sent.steered {
        true => "sent: the agent reads it before its next step",
        false => "sent: a turn starts with it, once those before it have ended",
    })
}
