//! Sessions as they are printed.

mod long;
mod notes;
mod replay;
mod session;
mod strangers;

use ratatui_core::text::Line;

use super::Flow;
use crate::{
    paint::shown::plain,
    transcript::{
        Transcript,
        tests::script::{Fed, feed},
    },
};

/// All that is printed where each thing is taken up at once, and what is live at the end.
struct Shown {
    printed: Vec<Line<'static>>,
    live: Vec<Line<'static>>,
}

fn shown(fed: &[Fed], columns: usize) -> Shown {
    let (mut transcript, mut flow) = (Transcript::new(), Flow::new());
    let mut shown = Shown {
        printed: Vec::new(),
        live: Vec::new(),
    };
    for fed in fed {
        feed(&mut transcript, fed);
        let step = flow.advance(&transcript, columns);
        transcript.printed(flow.next());
        shown.printed.extend(step.printed);
        shown.live = step.live;
    }
    shown
}

fn printed(fed: &[Fed], columns: usize) -> String {
    plain(&shown(fed, columns).printed)
}
