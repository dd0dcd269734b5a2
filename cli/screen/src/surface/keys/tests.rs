//! Keys from a terminal.

use crossterm::event::KeyCode;
use nix::sys::signal::{Signal, raise};
use rustix::termios::{OptionalActions, tcsetattr};

use super::*;
use crate::surface::pty::Pty;

fn raw() -> (Pty, Keys) {
    let pty = Pty::open();
    let mut termios = pty.termios();
    termios.make_raw();
    tcsetattr(&pty.program, OptionalActions::Now, &termios).expect("it is a terminal");
    let keys = Keys::new(&pty.terminal()).expect("it can be waited for");
    (pty, keys)
}

fn letter(letter: char) -> Input {
    Input::Key(KeyCode::Char(letter).into())
}

#[tokio::test]
async fn keys_come_in_their_order_and_the_end_once() {
    let (mut pty, mut keys) = raw();
    pty.type_in("a\x1b[A\x1b[200~text\x1b[201~");
    assert_eq!(keys.next().await, letter('a'));
    assert_eq!(keys.next().await, Input::Key(KeyCode::Up.into()));
    assert!(matches!(keys.next().await, Input::Paste(paste) if paste.text == "text"));
    pty.type_in("\x1b");
    assert_eq!(keys.next().await, Input::Key(KeyCode::Esc.into()));
    drop(pty);
    assert_eq!(keys.next().await, Input::End);
    let after = tokio::time::timeout(Duration::ZERO, keys.next()).await;
    assert!(after.is_err());
}

#[tokio::test]
async fn a_pause_leaves_every_byte_to_the_editor() {
    let (mut pty, mut keys) = raw();
    pty.type_in("a");
    assert_eq!(keys.next().await, letter('a'));
    keys.pause();
    pty.type_in("editor");
    let paused = tokio::time::timeout(Duration::from_millis(20), keys.next()).await;
    assert!(paused.is_err());
    let mut taken = [0; 100];
    let count = rustix::io::read(&pty.program, &mut taken).expect("the editor reads");
    assert_eq!(&taken[..count], b"editor");
    pty.type_in("b");
    keys.resume();
    assert_eq!(keys.next().await, letter('b'));
}

#[tokio::test]
async fn a_resize_is_told_also_after_a_pause() {
    let (pty, mut keys) = raw();
    for (columns, is_paused) in [(90, false), (100, true)] {
        let size = Size { columns, rows: 30 };
        let told = async {
            if is_paused {
                keys.pause();
            }
            pty.resize(size);
            // The terminal is not this process's own, so its signal is sent by hand.
            raise(Signal::SIGWINCH).expect("it is sent");
            keys.resume();
            keys.next().await
        };
        assert_eq!(told.await, Input::Resize(size));
    }
}
