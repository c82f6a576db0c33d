use core::fmt;

/// Prints `value` in the largest unit that does not exceed it and needs at most three decimals;
/// zero in the smallest unit. Units come in falling order and end with 1, so that the text is exact
/// and reads back to the same value.
pub(crate) fn format_scaled(
    f: &mut fmt::Formatter<'_>,
    value: u64,
    units: &[(u64, &str)],
) -> fmt::Result {
    for &(scale, unit) in units {
        if value < scale {
            continue;
        }
        let (whole, rest) = (value / scale, value % scale);
        if rest == 0 {
            return write!(f, "{whole} {unit}");
        }
        // Exact in thousandths of this unit?
        if scale >= 1000 && rest % (scale / 1000) == 0 {
            let thousandths = format!("{:03}", rest / (scale / 1000));
            return write!(f, "{whole}.{} {unit}", thousandths.trim_end_matches('0'));
        }
    }
    match units.last() {
        Some(&(scale, unit)) => write!(f, "{} {unit}", value / scale),
        None => write!(f, "{value}"),
    }
}
