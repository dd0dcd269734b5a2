//! What was measured, and how it is printed: each line is a ratio of medians from the same run.

use std::fmt::Write as _;

use shared_types::{Clock, SystemClock};

/// A mebibyte, in bytes.
pub(crate) const MIB: f64 = 1_048_576.0;

const COLUMNS: usize = 6;

/// One figure, taken in rounds: ours and the peer's alternate, so that both see the same machine.
pub(crate) struct Figure {
    what: String,
    unit: Unit,
    goal: Goal,
    rounds: Vec<Round>,
}

/// What is to be reached by the median.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// Nothing: the line explains another.
    None,
    /// Ours divided by the peer's.
    RatioAtMost(f64),
    RatioAtLeast(f64),
    /// Ours, in the figure's base unit.
    AtMost(f64),
    AtLeast(f64),
}

struct Round {
    ours: f64,
    /// Absent where there is nobody to compare with.
    peer: Option<f64>,
}

/// What a number means.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// Seconds, shown as milliseconds.
    Seconds,
    /// Seconds, shown as microseconds.
    ShortSeconds,
    /// Things done each second.
    PerSecond,
    /// Bytes each second, shown as MB/s.
    BytesPerSecond,
    /// Memory in bytes, shown as MiB.
    Memory,
    /// Memory in bytes, shown as KiB.
    SmallMemory,
    /// A number of things.
    Count,
    /// A file's size in bytes, shown as MB.
    Size,
}

impl Figure {
    pub(crate) fn new(what: impl Into<String>, unit: Unit, goal: Goal) -> Self {
        Self {
            what: what.into(),
            unit,
            goal,
            rounds: Vec::new(),
        }
    }

    /// Adds a round.
    pub(crate) fn round(&mut self, ours: f64, peer: f64) {
        let peer = Some(peer);
        self.rounds.push(Round { ours, peer });
    }

    /// Adds a round in which nobody is compared with.
    pub(crate) fn lone_round(&mut self, ours: f64) {
        self.rounds.push(Round { ours, peer: None });
    }

    /// A number that stands alone.
    pub(crate) fn alone(what: impl Into<String>, unit: Unit, goal: Goal, ours: f64) -> Self {
        let mut figure = Self::new(what, unit, goal);
        figure.lone_round(ours);
        figure
    }

    fn cells(&self) -> [String; COLUMNS] {
        let ours: Vec<f64> = self.rounds.iter().map(|round| round.ours).collect();
        let peer: Vec<f64> = self.rounds.iter().filter_map(|round| round.peer).collect();
        let ratios: Vec<f64> = ours
            .iter()
            .zip(&peer)
            .map(|(ours, peer)| ours / peer)
            .collect();
        let (goal, met) = self.judge(&ours, &ratios);
        [
            self.what.clone(),
            self.spread(&ours),
            self.spread(&peer),
            match Spread::of(&ratios) {
                // Two digits that say something, also where ours is a small part of the peer's.
                Some(ratio) if ratio.median < 0.1 => {
                    format!("{:.4} ({:.4}–{:.4})", ratio.median, ratio.min, ratio.max)
                }
                Some(ratio) => format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.min, ratio.max),
                None => "–".to_owned(),
            },
            goal,
            match met {
                Some(true) => "met",
                Some(false) => "MISSED",
                None => "",
            }
            .to_owned(),
        ]
    }

    /// The goal as text, and whether the median meets it.
    fn judge(&self, ours: &[f64], ratios: &[f64]) -> (String, Option<bool>) {
        let (scale, unit, _) = self.unit.shown();
        let median = |numbers| Spread::of(numbers).map(|spread| spread.median);
        match self.goal {
            Goal::None => ("–".to_owned(), None),
            Goal::RatioAtMost(most) => (
                format!("≤ {most}"),
                median(ratios).map(|ratio| ratio <= most),
            ),
            Goal::RatioAtLeast(least) => (
                format!("≥ {least}"),
                median(ratios).map(|ratio| ratio >= least),
            ),
            Goal::AtMost(most) => {
                let text = format!("≤ {:.0} {unit}", most * scale);
                (
                    text.trim_end().to_owned(),
                    median(ours).map(|ours| ours <= most),
                )
            }
            Goal::AtLeast(least) => {
                let text = format!("≥ {:.0} {unit}", least * scale);
                (
                    text.trim_end().to_owned(),
                    median(ours).map(|ours| ours >= least),
                )
            }
        }
    }

    fn spread(&self, numbers: &[f64]) -> String {
        let Some(spread) = Spread::of(numbers) else {
            return "–".to_owned();
        };
        let (scale, unit, digits) = self.unit.shown();
        let show = |number: f64| format!("{:.digits$}", number * scale);
        let mut text = format!("{} {unit}", show(spread.median));
        if numbers.len() > 1 {
            let _ = write!(text, " ({}–{})", show(spread.min), show(spread.max));
        }
        text.trim_end().to_owned()
    }
}

impl Unit {
    /// Factor, name and digits after the point.
    fn shown(self) -> (f64, &'static str, usize) {
        match self {
            Self::Seconds => (1e3, "ms", 2),
            Self::ShortSeconds => (1e6, "µs", 0),
            Self::PerSecond => (1.0, "/s", 0),
            Self::BytesPerSecond => (1e-6, "MB/s", 0),
            Self::Memory => (1.0 / MIB, "MiB", 1),
            Self::SmallMemory => (1.0 / 1024.0, "KiB", 1),
            Self::Count => (1.0, "", 0),
            Self::Size => (1e-6, "MB", 1),
        }
    }
}

/// Median, least and most.
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(numbers: &[f64]) -> Option<Self> {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            median: *sorted.get(sorted.len() / 2)?,
            min: *sorted.first()?,
            max: *sorted.last()?,
        })
    }
}

/// The median of one round's samples.
///
/// # Panics
/// If there are none.
pub(crate) fn median(samples: &[f64]) -> f64 {
    Spread::of(samples).expect("a round has samples").median
}

/// The sample that this part of one round's samples does not exceed.
///
/// # Panics
/// If there are none.
pub(crate) fn percentile(samples: &[f64], part: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * part) as usize;
    sorted[at.min(sorted.len() - 1)]
}

/// Prints all figures as one aligned table.
pub(crate) fn print(figures: &[Figure]) {
    let head = ["what", "ours", "peer", "ours/peer", "goal", ""].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head)
        .chain(figures.iter().map(Figure::cells))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..COLUMNS).filter_map(width).collect();
    for row in &rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

/// Tells how long something took.
#[derive(Clone)]
pub(crate) struct Stopwatch(SystemClock);

impl Stopwatch {
    pub(crate) fn new() -> Self {
        Self(SystemClock::new())
    }

    /// Seconds that it takes.
    pub(crate) async fn time<T>(&self, work: impl Future<Output = T>) -> (f64, T) {
        let began = self.0.monotonic();
        let result = work.await;
        ((self.0.monotonic() - began).as_secs_f64(), result)
    }

    /// Seconds that it takes, on this thread.
    pub(crate) fn time_here<T>(&self, work: impl FnOnce() -> T) -> (f64, T) {
        let began = self.0.monotonic();
        let result = work();
        ((self.0.monotonic() - began).as_secs_f64(), result)
    }
}
