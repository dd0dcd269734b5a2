//! A shared session as a page for people: no script, no other files.

use std::fmt::{self, Write as _};

use server_app::Session;
use shared_types::{
    Event, SessionEvent,
    event::{CallOutcome, ToolCall, TurnOutcome},
};

use crate::rest::html::{Escaped, document};

/// The page of a session with these events; `more` if others follow.
pub(super) fn session(session: &Session, events: &[SessionEvent], more: bool) -> String {
    let title = match session.title.as_str() {
        "" => "A session",
        title => title,
    };
    let mut body = format!(
        "<header><h1>{}</h1><p>Shared from Gantry to be read. Begun {}.</p></header>\n",
        Escaped(title),
        Escaped(session.created_at),
    );
    for event in events.iter().filter_map(SessionEvent::known) {
        // Writing to a text does not fail.
        let _ = write_event(&mut body, event);
    }
    if let Some(last) = events.last().filter(|_| more) {
        let _ = writeln!(body, "<p><a href=\"?after={}\">Go on</a></p>", last.seq);
    }
    document(title, &body)
}

/// The page for a link that leads nowhere.
pub(super) fn not_found() -> String {
    document(
        "Nothing is shared here",
        "<h1>Nothing is shared here</h1><p>The link was ended or has expired, or is not whole. Ask \
         its sender for a new one.</p>",
    )
}

fn write_event(page: &mut String, event: &Event) -> fmt::Result {
    match event {
        Event::InputAccepted { parts, .. } | Event::InputSteered { parts, .. } => {
            writeln!(
                page,
                "<article class=\"you\" dir=\"auto\">{}</article>",
                Escaped(parts.words())
            )
        }
        Event::AnswerRecorded { parts, .. } => {
            let text = parts.words();
            if !text.is_empty() {
                writeln!(page, "<article dir=\"auto\">{}</article>", Escaped(text))?;
            }
            parts.calls().try_for_each(|call| write_call(page, call))
        }
        Event::CallEnded { outcome, parts, .. } => {
            let summary = match outcome {
                CallOutcome::Completed => "Result",
                _ => "It did not work",
            };
            write_details(page, summary, &parts.words())
        }
        Event::TurnEnded {
            outcome, reason, ..
        } if *outcome != TurnOutcome::Completed => {
            let reason = reason.as_deref().unwrap_or("the turn did not complete");
            writeln!(page, "<p class=\"note\">{}</p>", Escaped(reason))
        }
        Event::ConversationRewound { before, .. } => {
            let note = format!("went back to before {before:?}: what follows goes on from there");
            writeln!(page, "<p class=\"note\" dir=\"auto\">{}</p>", Escaped(note))
        }
        _ => Ok(()),
    }
}

fn write_call(page: &mut String, call: &ToolCall) -> fmt::Result {
    let call = call.as_meant();
    write_details(page, &call.name, &call.arguments)
}

fn write_details(page: &mut String, summary: &str, text: &str) -> fmt::Result {
    writeln!(
        page,
        "<details><summary>{}</summary><pre dir=\"auto\">{}</pre></details>",
        Escaped(summary),
        Escaped(text),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_text_and_never_markup() {
        let hostile = "<script>alert('1 & \"2\"')</script>";
        let mut page = String::new();
        let call = ToolCall {
            vendor_id: "1".to_owned(),
            name: hostile.to_owned(),
            arguments: hostile.to_owned(),
            opaque: Default::default(),
        };
        write_call(&mut page, &call).expect("text takes it");
        let safe = "&lt;script&gt;alert(&#39;1 &amp; &quot;2&quot;&#39;)&lt;/script&gt;";
        assert_eq!(page.matches(safe).count(), 2, "{page}");
        assert!(!page.contains("<script"));
        assert!(!document(hostile, "").contains("<script"));
    }
}
