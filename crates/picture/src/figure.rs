//! What a figure is made of, as it is described.

/// A figure: panels in a grid, row by row; the last row may be short.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Points (1/72 inch).
    pub width_pt: f64,
    /// Points (1/72 inch).
    pub height_pt: f64,
    /// Panels side by side.
    pub columns: usize,
    /// Height of each row in relation to the others.
    pub heights: Vec<f64>,
    /// The panels.
    pub panels: Vec<Panel>,
    /// Below all panels.
    pub x_label: String,
    /// Left of all panels.
    pub y_label: String,
    /// Panels whose axis along x is one.
    pub shared_x: Shared,
    /// Panels whose axis along y is one.
    pub shared_y: Shared,
    /// Labels in one line above all panels; else each panel has its own beside its title.
    pub legend_above: bool,
}

/// Which panels have the same axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// All of the figure.
    All,
    /// Those side by side.
    Row,
    /// Those below each other.
    Column,
    /// None: each panel has its own.
    None,
}

impl Shared {
    /// By the name that matplotlib has for it, too.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "all" => Some(Self::All),
            "row" => Some(Self::Row),
            "col" => Some(Self::Column),
            "none" => Some(Self::None),
            _ => None,
        }
    }
}

/// A pair of axes and what is drawn in it.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// The title begins where the axis does, instead of in the middle.
    pub title_left: bool,
    /// Below it.
    pub x_label: String,
    /// Left of it; may have two lines.
    pub y_label: String,
    /// x is logarithmic.
    pub x_log: bool,
    /// y is logarithmic.
    pub y_log: bool,
    /// x begins and ends with the data.
    pub x_tight: bool,
    /// Where x begins and ends, where it is said.
    pub x_limits: (Option<f64>, Option<f64>),
    /// Where y begins and ends, where it is said.
    pub y_limits: (Option<f64>, Option<f64>),
    /// The marks along x and what is written there, where they are said.
    pub ticks: Option<Vec<(f64, String)>>,
    /// Lines of the grid rise from the marks along x.
    pub x_grid: bool,
    /// What is drawn.
    pub lines: Vec<Line>,
    /// Without axes, marks and grid: a map.
    pub bare: bool,
    /// Else its place stays empty.
    pub shown: bool,
}

/// One for each point that has one.
pub type Values = Vec<Option<f64>>;

/// A line, points, or both.
#[derive(Clone, Debug)]
pub struct Line {
    /// Along x, rising where they are joined.
    pub x: Vec<f64>,
    /// As many; a line is broken where there is none.
    pub y: Values,
    /// Red, green, blue.
    pub colour: (u8, u8, u8),
    /// In points.
    pub width: f64,
    /// Lengths of dashes and gaps in widths of the line; empty for a line without gaps.
    pub dashes: Vec<f64>,
    /// Points are joined.
    pub joined: bool,
    /// Joined by steps that rise at the point.
    pub steps: bool,
    /// The shape of the points.
    pub marker: Option<Marker>,
    /// In the legend.
    pub label: Option<String>,
    /// An interval around each point that has one: its lower and its upper end.
    pub interval: Option<(Values, Values)>,
    /// A band: its lower and its upper edge; it is broken where there is none.
    pub band: Option<(Values, Values)>,
}

/// The shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A disc.
    Circle,
    /// A square.
    Square,
    /// A triangle on its side.
    Up,
    /// A square on its corner.
    Diamond,
    /// A triangle on its corner.
    Down,
    /// A cross with upright arms.
    Plus,
    /// A cross with slanted arms.
    Cross,
    /// A triangle that points left.
    Left,
}

impl Line {
    /// The ends of the interval around a point that has one.
    pub(crate) fn interval(&self, point: usize) -> Option<(f64, f64)> {
        let (low, high) = self.interval.as_ref()?;
        let end = |of: &Values| of.get(point).copied().flatten().filter(|end| end.is_finite());
        Some((end(low)?, end(high)?))
    }
}

impl Marker {
    /// By the letter that matplotlib has for it, too.
    pub fn named(name: char) -> Option<Self> {
        match name {
            'o' => Some(Self::Circle),
            's' => Some(Self::Square),
            '^' => Some(Self::Up),
            'D' => Some(Self::Diamond),
            'v' => Some(Self::Down),
            'P' => Some(Self::Plus),
            'X' => Some(Self::Cross),
            '<' => Some(Self::Left),
            _ => None,
        }
    }
}

/// A colour written as `#RRGGBB`.
pub fn colour(name: &str) -> Option<(u8, u8, u8)> {
    let digits = name.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.is_ascii())?;
    let part = |from: usize| u8::from_str_radix(&digits[from..from + 2], 16).ok();
    Some((part(0)?, part(2)?, part(4)?))
}
