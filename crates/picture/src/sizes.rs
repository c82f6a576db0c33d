//! Sizes of letters and lines.

/// Text sizes in points.
pub const TEXT_PT: f64 = 8.0;
/// Of what is written at marks.
pub const MARK_TEXT_PT: f64 = 7.0;
/// A line of text, with what separates it from the next.
pub const LINE_PT: f64 = 11.0;
/// The same of what is written at marks.
pub const MARK_LINE_PT: f64 = 9.5;
/// From an axis to what is written at its marks.
pub const MARK_PT: f64 = 5.0;
