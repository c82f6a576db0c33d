//! From where to where axes go, and where their marks are.

use crate::figure::{Panel, Picture, Shared};

/// Part of an axis that is left free on either side of the data.
const MARGIN: f64 = 0.05;
/// Marks are at these multiples of a power of ten.
const STEPS: [f64; 5] = [1.0, 2.0, 2.5, 5.0, 10.0];
/// As many digits after the point as are ever needed.
const MOST_DECIMALS: usize = 12;
/// Numbers beyond this are not drawn: their differences would be none.
pub const LARGEST: f64 = 1e150;
/// Ends of an axis that are closer than this part of them are the same.
const CLOSE: f64 = 1e-6;
/// From here on numbers at marks are written with their power of ten.
const LARGE: f64 = 1e7;
/// As well as numbers with more digits after the point.
const DECIMALS: usize = 5;
/// A logarithmic axis shorter than this many decades has marks between the powers of ten.
const FEW_DECADES: f64 = 2.0;

/// From where to where an axis goes, in the coordinate that is drawn: the logarithm on a logarithmic axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// Its beginning.
    pub low: f64,
    /// Its end.
    pub high: f64,
}

/// The axes of a panel.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    /// Along x.
    pub x: Extent,
    /// Along y.
    pub y: Extent,
}

/// The axes of all panels; shared ones hold the data of all that share them.
pub fn axes(picture: &Picture) -> Vec<Axes> {
    let alike = |shared: Shared, a: usize, b: usize| match shared {
        Shared::All => true,
        Shared::Row => a / picture.columns == b / picture.columns,
        Shared::Column => a % picture.columns == b % picture.columns,
        Shared::None => a == b,
    };
    let of = |shared: Shared, place: usize| {
        let same = picture
            .panels
            .iter()
            .enumerate()
            .filter(move |(other, _)| alike(shared, place, *other));
        same.map(|(_, panel)| panel)
    };
    (0..picture.panels.len())
        .map(|place| Axes {
            // An axis is logarithmic for all that share it, or for none.
            x: x_extent(
                of(picture.shared_x, place)
                    .filter(|panel| panel.x_log == picture.panels[place].x_log),
            ),
            y: y_extent(
                of(picture.shared_y, place)
                    .filter(|panel| panel.y_log == picture.panels[place].y_log),
            ),
        })
        .collect()
}

/// The coordinate in which a value along x is drawn.
pub fn along(panel: &Panel, x: f64) -> f64 {
    drawn_at(panel.x_log, x)
}

/// The coordinate in which a value along y is drawn.
pub fn up(panel: &Panel, y: f64) -> f64 {
    drawn_at(panel.y_log, y)
}

fn drawn_at(logarithmic: bool, value: f64) -> f64 {
    match logarithmic {
        true if (LARGEST.recip()..=LARGEST).contains(&value) => value.log10(),
        true => f64::NAN,
        false => value,
    }
}

/// The value that is drawn at a coordinate of an axis.
pub fn value(logarithmic: bool, at: f64) -> f64 {
    if logarithmic { 10.0_f64.powf(at) } else { at }
}

fn x_extent<'a>(panels: impl Iterator<Item = &'a Panel>) -> Extent {
    let (mut found, mut limits, mut margin) = (None, (None, None), 0.0);
    for panel in panels {
        for (&x, y) in panel.lines.iter().flat_map(|line| line.x.iter().zip(&line.y)) {
            if y.is_some() {
                found = widened(found, along(panel, x));
            }
        }
        for &(x, _) in panel.ticks.iter().flatten() {
            found = widened(found, along(panel, x));
        }
        let limit = |x: Option<f64>| x.map(|x| along(panel, x)).filter(|&x| is_drawn(x));
        limits.0 = limits.0.or(limit(panel.x_limits.0));
        limits.1 = limits.1.or(limit(panel.x_limits.1));
        margin = if panel.x_tight { 0.0 } else { MARGIN };
    }
    with_room(found, limits, margin)
}

fn y_extent<'a>(panels: impl Iterator<Item = &'a Panel>) -> Extent {
    let (mut found, mut limits) = (None, (None, None));
    for panel in panels {
        for line in &panel.lines {
            for (i, y) in line.y.iter().enumerate() {
                if let Some(y) = *y {
                    let (low, high) = line.interval(i).unwrap_or((y, y));
                    for end in [low, y, high] {
                        found = widened(found, up(panel, end));
                    }
                }
            }
            let edges = line.band.iter().flat_map(|(low, high)| low.iter().chain(high));
            for &y in edges.flatten() {
                found = widened(found, up(panel, y));
            }
        }
        let limit = |y: Option<f64>| y.map(|y| up(panel, y)).filter(|&y| is_drawn(y));
        limits.0 = limits.0.or(limit(panel.y_limits.0));
        limits.1 = limits.1.or(limit(panel.y_limits.1));
    }
    with_room(found, limits, MARGIN)
}

/// Whether a number has a place in a figure.
pub fn is_drawn(value: f64) -> bool {
    value.abs() <= LARGEST
}

fn widened(found: Option<(f64, f64)>, value: f64) -> Option<(f64, f64)> {
    if !is_drawn(value) {
        return found;
    }
    Some(found.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
}

fn with_room(found: Option<(f64, f64)>, limits: (Option<f64>, Option<f64>), margin: f64) -> Extent {
    let (low, high) = found.unwrap_or((0.0, 1.0));
    let room = margin * (high - low);
    let low = limits.0.unwrap_or(low - room);
    let high = limits.1.unwrap_or(high + room);
    // All values are the same, or lie beyond a limit that was set.
    let least = (CLOSE * low.abs().max(high.abs())).max(LARGEST.recip());
    if high - low > least {
        Extent { low, high }
    } else {
        Extent { low, high: low + low.abs().max(1.0) * MARGIN }
    }
}

/// Marks and what is written at them, about as many as asked for.
pub fn marks(extent: Extent, about: f64) -> Vec<(f64, String)> {
    let step = step(extent, about);
    let decimals = (0..MOST_DECIMALS).find(|&digits| is_whole(step * 10.0_f64.powi(digits as i32)));
    let decimals = decimals.unwrap_or(MOST_DECIMALS);
    let largest = extent.low.abs().max(extent.high.abs());
    let with_power = largest >= LARGE || decimals > DECIMALS;
    // Digits after the point of numbers between one and ten: 2.5 has one more than its power says.
    let power = |x: f64| x.log10().floor();
    let half = f64::from(!is_whole(step / 10.0_f64.powf(power(step))));
    let digits = (power(largest) - power(step) + half).clamp(0.0, MOST_DECIMALS as f64) as usize;
    let first = (extent.low / step).ceil();
    let count = (extent.high / step - first + 1e-9).floor();
    (0..=count.max(0.0) as usize)
        .map(|i| (first + i as f64) * step)
        .map(|value| {
            // A number that should be zero, and its sign.
            let value = if value.abs() < 1e-6 * step { 0.0 } else { value };
            let text = match value {
                0.0 if with_power => "0".to_owned(),
                _ if with_power => format!("{value:.digits$e}"),
                _ => format!("{value:.decimals$}"),
            };
            (value, text)
        })
        .collect()
}

fn is_whole(number: f64) -> bool {
    (number - number.round()).abs() < 1e-6 * number
}

/// The distance between two marks.
fn step(extent: Extent, about: f64) -> f64 {
    let least = (extent.high - extent.low) / about.max(1.0);
    let power = 10.0_f64.powf(least.log10().floor());
    STEPS.iter().map(|factor| factor * power).find(|&step| step >= least).unwrap_or(10.0 * power)
}

/// Marks of a logarithmic axis, which is given in powers of ten; of many decades, about as many as asked for.
pub fn log_marks(extent: Extent, about: f64) -> Vec<(f64, String)> {
    let decades = extent.high - extent.low;
    let factors: &[f64] = if decades < FEW_DECADES { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let every = (decades / about.max(1.0)).ceil().max(1.0) as usize;
    let mut found = Vec::new();
    for power in (extent.low.floor() as i32..=extent.high.ceil() as i32).step_by(every) {
        for factor in factors {
            let value = factor * 10.0_f64.powi(power);
            let place = value.log10();
            if (extent.low - 1e-9..=extent.high + 1e-9).contains(&place) {
                let decimals = usize::try_from(-power).unwrap_or(0);
                let written = if decimals > DECIMALS || value >= LARGE {
                    format!("{factor}e{power}")
                } else {
                    format!("{value:.decimals$}")
                };
                found.push((place, written));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(marks: Vec<(f64, String)>) -> Vec<String> {
        marks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn marks_are_round_numbers_inside_the_axis() {
        assert_eq!(
            written(marks(Extent { low: 0.0, high: 0.97 }, 5.0)),
            ["0.0", "0.2", "0.4", "0.6", "0.8"]
        );
        assert_eq!(written(marks(Extent { low: -30.0, high: 101.0 }, 3.0)), ["0", "50", "100"]);
        assert_eq!(
            written(marks(Extent { low: 0.1, high: 100.0 }, 4.0)),
            ["25", "50", "75", "100"]
        );
        assert_eq!(
            written(marks(Extent { low: 0.0, high: 0.01 }, 4.0)),
            ["0.0000", "0.0025", "0.0050", "0.0075", "0.0100"]
        );
        assert_eq!(written(marks(Extent { low: 9.46, high: 9.58 }, 3.0)), ["9.50", "9.55"]);
        assert_eq!(written(marks(Extent { low: 0.0, high: 5e8 }, 2.0)), ["0", "2.5e8", "5.0e8"]);
        assert_eq!(
            written(marks(Extent { low: 0.0, high: 3e-9 }, 3.0)),
            ["0", "1e-9", "2e-9", "3e-9"]
        );
    }

    #[test]
    fn a_logarithmic_axis_has_its_marks_at_powers_of_ten() {
        assert_eq!(
            written(log_marks(Extent { low: -1.0, high: 2.2 }, 9.0)),
            ["0.1", "1", "10", "100"]
        );
        assert_eq!(
            written(log_marks(Extent { low: -1.0, high: 0.5 }, 9.0)),
            ["0.1", "0.2", "0.5", "1", "2"]
        );
    }

    #[test]
    fn an_axis_without_data_still_has_a_length() {
        assert_eq!(with_room(None, (None, None), 0.0), Extent { low: 0.0, high: 1.0 });
        for end in [3.0, -1e149, 1e-200, 0.0] {
            let same = with_room(Some((end, end)), (None, None), MARGIN);
            assert!(same.high > same.low);
            assert!(marks(same, 5.0).len() < 20);
        }
    }

    #[test]
    fn what_is_no_number_has_no_place() {
        assert!(!is_drawn(f64::NAN) && !is_drawn(f64::INFINITY) && !is_drawn(1e200));
        let found = [f64::NAN, 1.0, f64::NEG_INFINITY, 1e300].into_iter().fold(None, widened);
        assert_eq!(found, Some((1.0, 1.0)));
    }
}
