//! The styles that programs choose (SGR, "select graphic rendition").

/// The colours and weights that a program gave a piece of its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SgrStyle {
    /// The colour, 0 to 15 of the terminal's theme; none is the terminal's own.
    pub colour: Option<u8>,
    /// Bold.
    pub bold: bool,
    /// Dim.
    pub dim: bool,
    /// Italic.
    pub italic: bool,
    /// Underlined.
    pub underlined: bool,
}

/// The usual red, green and blue of the 16 colours, as xterm has them.
const THEME: [[u8; 3]; 16] = [
    [0, 0, 0],
    [205, 0, 0],
    [0, 205, 0],
    [205, 205, 0],
    [0, 0, 238],
    [205, 0, 205],
    [0, 205, 205],
    [229, 229, 229],
    [127, 127, 127],
    [255, 0, 0],
    [0, 255, 0],
    [255, 255, 0],
    [92, 92, 255],
    [255, 0, 255],
    [0, 255, 255],
    [255, 255, 255],
];

/// The steps of red, green and blue in the cube of 216 colours.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

impl SgrStyle {
    /// Changes the style by the parameters of one sequence, such as `1;31`.
    pub(super) fn apply(&mut self, parameters: &str) {
        let mut groups = parameters.split(';');
        while let Some(group) = groups.next() {
            // Parts that colons join belong together: `38:5:208`.
            let mut parts = group.split(':').map(number);
            let code = parts.next().flatten().unwrap_or(0);
            let part = parts.next().flatten();
            match code {
                38 | 48 if group.contains(':') => {
                    let rest: Vec<u8> = parts.flatten().collect();
                    self.ground(code, colour(part, &mut rest.into_iter(), true));
                }
                38 | 48 => {
                    let kind = groups.next().and_then(number);
                    let mut rest = groups.by_ref().map(|text| number(text).unwrap_or(0));
                    let colour = colour(kind, &mut rest, false);
                    self.ground(code, colour);
                }
                4 => self.underlined = part != Some(0),
                code => self.simple(code),
            }
        }
    }

    fn simple(&mut self, code: u8) {
        match code {
            0 => *self = SgrStyle::default(),
            1 => self.bold = true,
            2 => self.dim = true,
            3 => self.italic = true,
            21 => self.underlined = true,
            22 => (self.bold, self.dim) = (false, false),
            23 => self.italic = false,
            24 => self.underlined = false,
            30..=37 => self.colour = Some(code - 30),
            39 => self.colour = None,
            90..=97 => self.colour = Some(code - 90 + 8),
            _ => {}
        }
    }

    /// Sets the colour of the letters; that of their background is left out.
    fn ground(&mut self, code: u8, colour: Option<u8>) {
        if code == 38 && colour.is_some() {
            self.colour = colour;
        }
    }
}

fn number(text: &str) -> Option<u8> {
    text.parse().ok()
}

/// The nearest of the 16 colours to one of 256 (kind 5), or to red, green and blue (kind 2).
fn colour(kind: Option<u8>, rest: &mut dyn Iterator<Item = u8>, is_joined: bool) -> Option<u8> {
    match kind? {
        5 => Some(of_256(rest.next()?)),
        2 if is_joined => {
            // A number for the colour space may stand first.
            let numbers: Vec<u8> = rest.collect();
            match numbers.as_slice() {
                [.., red, green, blue] => Some(nearest([*red, *green, *blue])),
                _ => None,
            }
        }
        2 => Some(nearest([rest.next()?, rest.next()?, rest.next()?])),
        _ => None,
    }
}

fn of_256(number: u8) -> u8 {
    match number {
        0..16 => number,
        16..232 => {
            let index = usize::from(number - 16);
            nearest([CUBE[index / 36], CUBE[index / 6 % 6], CUBE[index % 6]])
        }
        232.. => nearest([8 + (number - 232) * 10; 3]),
    }
}

fn nearest(wanted: [u8; 3]) -> u8 {
    let distance = |index: &u8| -> u32 {
        let theme = THEME[usize::from(*index)];
        let parts = theme.iter().zip(wanted);
        parts
            .map(|(have, wanted)| u32::from(have.abs_diff(wanted)).pow(2))
            .sum()
    };
    (0..16).min_by_key(distance).unwrap_or(0)
}
