use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use shared_sandbox::{OutputStream, Signal, TerminalSize};
use tokio::sync::Semaphore;

use super::*;

/// An operation that takes two bytes of input at a time and does one thing, each once it may.
#[derive(Debug)]
struct Process {
    input: Mutex<Vec<u8>>,
    ended: Mutex<bool>,
    done: Mutex<Vec<Control>>,
    may: Semaphore,
}

#[async_trait]
impl Controls for Process {
    async fn input(&self, piece: Input) -> Result<u64, Refusal> {
        self.may.acquire().await.expect("it is open").forget();
        let mut input = self.input.lock().expect("no panic");
        assert_eq!(piece.offset, input.len() as u64, "in order");
        let fits = piece.data.len().min(2);
        input.extend(&piece.data[..fits]);
        *self.ended.lock().expect("no panic") = piece.end && fits == piece.data.len();
        Ok(input.len() as u64)
    }

    async fn control(&self, control: Control) -> Result<(), Refusal> {
        self.may.acquire().await.expect("it is open").forget();
        self.done.lock().expect("no panic").push(control);
        Ok(())
    }

    async fn commit(&self, _: OutputStream, _: u64) {}
}

fn process(may: usize) -> (Arc<Process>, Hands) {
    let process = Arc::new(Process {
        input: Mutex::default(),
        ended: Mutex::default(),
        done: Mutex::default(),
        may: Semaphore::new(may),
    });
    (process.clone(), Hands::of(process))
}

fn piece(offset: u64, data: &'static [u8], end: bool) -> Input {
    Input {
        offset,
        data: Bytes::from_static(data),
        end,
    }
}

#[tokio::test]
async fn input_is_handed_over_in_order_and_whole_with_one_piece_behind_it() {
    let (process, mut hands) = process(0);
    hands.take(piece(0, b"hello ", false));
    assert!(hands.have_room());
    hands.take(piece(6, b"world", true));
    assert!(!hands.have_room(), "a third piece is not read");
    assert_eq!(hands.passed().now_or_never(), None);
    process.may.add_permits(3);
    assert_eq!(hands.passed().await, Ok(()));
    assert!(hands.have_room());
    process.may.add_permits(3);
    assert_eq!(hands.passed().await, Ok(()));
    assert_eq!(*process.input.lock().expect("no panic"), b"hello world");
    assert!(*process.ended.lock().expect("no panic"));
}

#[tokio::test]
async fn of_sizes_in_a_row_the_last_one_counts_and_too_much_is_refused() {
    let (process, mut hands) = process(0);
    let size = |rows| Control::Resize(TerminalSize { rows, columns: 80 });
    let interrupt = Control::Signal(Signal::Interrupt);
    let asked = [interrupt, size(1), size(2), size(3), interrupt, size(4)];
    for control in asked {
        assert!(hands.do_next(control).is_ok());
    }
    process.may.add_permits(MAX_CONTROLS_WAITING);
    for _ in 0..4 {
        assert_eq!(hands.passed().await, Ok(()));
    }
    assert_eq!(hands.passed().now_or_never(), None);
    let done = process.done.lock().expect("no panic").clone();
    assert_eq!(done, [interrupt, size(3), interrupt, size(4)]);
    let accepted = (0..100).take_while(|_| hands.do_next(interrupt).is_ok());
    assert_eq!(
        accepted.count(),
        1 + MAX_CONTROLS_WAITING,
        "one is being done"
    );
}
