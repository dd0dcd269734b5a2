use std::time::Duration;

use shared_api::{Operation, OperationEnd, OperationRunner, OperationState, StreamName};
use shared_types::{RunnerId, Timestamp};

use super::{lines::OF_A_SECOND, *};

const BUILD: OperationId = OperationId::from_u128(1);

/// What is shown of a first task whose output is followed from these offsets.
struct Screen {
    tasks: Tasks,
    now: Instant,
}

impl Screen {
    fn following(from: Begin) -> Self {
        let mut tasks = Tasks::default();
        tasks.caught_up();
        tasks.begun(1, BUILD, from);
        tasks.begin_to_follow(Style::new(false));
        Self {
            tasks,
            now: Instant::now(),
        }
    }

    fn hear(&mut self, item: Attached) {
        self.tasks.heard(BUILD, &Ok(item), self.now);
    }

    fn shown(&mut self) -> String {
        self.tasks.ready(self.now)
    }

    fn shown_after_a_second(&mut self) -> String {
        self.now += Duration::from_secs(1);
        self.shown()
    }
}

fn output(stream: StreamName, offset: u64, text: &str) -> Attached {
    Attached::Output {
        stream,
        offset,
        data: text.to_owned().into(),
    }
}

fn stdout(offset: u64, text: &str) -> Attached {
    output(StreamName::Stdout, offset, text)
}

fn ended() -> Attached {
    Attached::Ended(Box::new(Operation {
        id: BUILD,
        runner: OperationRunner {
            id: RunnerId::from_u128(1),
            name: "laptop".to_owned(),
        },
        title: "make".to_owned(),
        kind: "exec".to_owned(),
        started_by: None,
        session: None,
        turn: None,
        input: None,
        placed_at: Timestamp::from_micros(0),
        cancel_requested_at: None,
        stopped: None,
        state: OperationState::Ended,
        ended_at: None,
        end: Some(OperationEnd::Lost {
            words: "exit code 0".to_owned(),
        }),
    }))
}

#[test]
fn lines_come_whole_behind_the_number_of_their_task_and_the_end_comes_last() {
    let mut screen = Screen::following(Begin::Offsets([7, 0]));
    screen.hear(stdout(7, "compil"));
    screen.hear(output(StreamName::Stderr, 0, "warning\n"));
    assert_eq!(screen.shown(), "[task 1] warning\n");
    screen.hear(stdout(13, "ing\r\n  10 %\r  20 %\n\nlin"));
    assert_eq!(
        screen.shown(),
        "[task 1] compiling\n[task 1]   10 %\n[task 1]   20 %\n[task 1] \n"
    );
    screen.hear(Attached::Gap {
        stream: StreamName::Stdout,
        from: 35,
        to: 44,
    });
    screen.hear(ended());
    assert_eq!(
        screen.shown(),
        "[task 1] … 9 bytes that are not kept\n[task 1] lin\n[task 1] ended: exit code 0\n"
    );
}

#[test]
fn of_a_flood_the_first_and_the_last_lines_of_each_second_are_shown() {
    let mut screen = Screen::following(Begin::Offsets([0, 0]));
    let flood: String = (1..=1000).map(|line| format!("{line}\n")).collect();
    screen.hear(stdout(0, &flood));
    assert_eq!(screen.shown().lines().count(), OF_A_SECOND.head);
    assert!(screen.tasks.is_holding());
    assert_eq!(
        screen.shown_after_a_second(),
        "[task 1] … 975 more lines\n[task 1] 996\n[task 1] 997\n[task 1] 998\n[task 1] 999\n[task 1] 1000\n"
    );
    assert!(!screen.tasks.is_holding());
    screen.hear(stdout(0, "slow again\n"));
    assert_eq!(screen.shown(), "[task 1] slow again\n");
}

#[test]
fn a_task_that_ran_before_is_shown_from_its_last_lines_on() {
    let mut screen = Screen::following(Begin::LastLines);
    screen.hear(stdout(1000, "alf a line\nwhole\n"));
    assert_eq!(screen.shown(), "[task 1] …alf a line\n[task 1] whole\n");
}

#[test]
fn nothing_that_a_task_writes_drives_the_terminal() {
    let mut screen = Screen::following(Begin::Offsets([0, 0]));
    screen.hear(stdout(0, "\u{1b}[2J\u{1b}]0;owned\u{7}x\u{8}\n"));
    assert_eq!(screen.shown(), "[task 1] x␈\n");
}

#[test]
fn few_tasks_are_followed_at_a_time_and_the_next_one_once_one_has_ended() {
    let mut screen = Screen::following(Begin::Offsets([0, 0]));
    let style = Style::new(false);
    let operation = OperationId::from_u128;
    for number in 2..=9 {
        let id = operation(u128::from(number));
        screen
            .tasks
            .begun(number, id, Begin::Offsets([u64::from(number), 0]));
    }
    let begun = screen.tasks.begin_to_follow(style);
    assert_eq!(begun.len(), MAX_FOLLOWED - 1);
    assert_eq!(screen.tasks.begin_to_follow(style), []);
    screen.hear(ended());
    let last = ToFollow {
        operation: operation(9),
        from: Begin::Offsets([9, 0]),
    };
    assert_eq!(screen.tasks.begin_to_follow(style), [last]);
}

#[test]
fn of_a_log_only_tasks_that_still_run_are_followed_from_where_they_were_read_to() {
    let mut tasks = Tasks::default();
    let style = Style::new(false);
    let [over, runs] = [1, 2].map(OperationId::from_u128);
    tasks.begun(1, over, Begin::Offsets([1, 0]));
    tasks.begun(2, runs, Begin::Offsets([2, 5]));
    tasks.read_to(2, [4, 3]);
    assert_eq!(tasks.begin_to_follow(style), []);
    assert_eq!(tasks.settled(over), Settled::Untold(1));
    tasks.caught_up();
    let from = Begin::Offsets([4, 5]);
    let operation = runs;
    assert_eq!(tasks.begin_to_follow(style), [ToFollow { operation, from }]);
    assert_eq!(tasks.settled(runs), Settled::Told);
}
