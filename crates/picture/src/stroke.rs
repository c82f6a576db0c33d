//! Lines as they are drawn: with steps, inside their panel, no denser than can be seen, with dashes.

use crate::extent::is_drawn;

/// A line in the coordinates of its panel.
pub type Path = Vec<(f64, f64)>;

/// Cuts a line where it has no value; with steps, each value lasts until the next.
pub fn pieces(x: &[f64], y: &[Option<f64>], steps: bool) -> Vec<Path> {
    let mut found = vec![Path::new()];
    for (&x, y) in x.iter().zip(y) {
        let Some(y) = y.filter(|&y| is_drawn(y) && is_drawn(x)) else {
            found.push(Path::new());
            continue;
        };
        let piece = found.last_mut().expect("it begins with one");
        if let Some(&(_, before)) = piece.last().filter(|_| steps) {
            piece.push((x, before));
        }
        piece.push((x, y));
    }
    found.retain(|piece| !piece.is_empty());
    found
}

/// Cuts a band where it lacks an edge: the lower and the upper edge of each part.
pub fn bands(x: &[f64], low: &[Option<f64>], high: &[Option<f64>]) -> Vec<(Path, Path)> {
    let mut found = vec![(Path::new(), Path::new())];
    for ((&x, &low), &high) in x.iter().zip(low).zip(high) {
        match (low, high) {
            (Some(low), Some(high)) if [x, low, high].into_iter().all(is_drawn) => {
                let (lower, upper) = found.last_mut().expect("it begins with one");
                lower.push((x, low));
                upper.push((x, high));
            }
            _ => found.push((Path::new(), Path::new())),
        }
    }
    found.retain(|(lower, _)| !lower.is_empty());
    found
}

/// The parts of a line between two heights.
pub fn clipped(path: &[(f64, f64)], low: f64, high: f64) -> Vec<Path> {
    let mut found: Vec<Path> = vec![];
    let inside = |y: f64| (low..=high).contains(&y);
    for pair in path.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        let (from, to) = (at_height(a, b, low, high), at_height(b, a, low, high));
        let (Some(from), Some(to)) = (from, to) else { continue };
        match found.last_mut() {
            Some(last) if inside(a.1) && last.last() == Some(&a) => last.push(to),
            _ => found.push(vec![from, to]),
        }
    }
    if let [only] = path
        && inside(only.1)
    {
        found.push(vec![*only]);
    }
    found
}

/// Where a line that leads from `a` to `b` enters between two heights: at `a` if that is there already.
fn at_height(a: (f64, f64), b: (f64, f64), low: f64, high: f64) -> Option<(f64, f64)> {
    let edge = if a.1 < low {
        low
    } else if a.1 > high {
        high
    } else {
        return Some(a);
    };
    let crosses = (a.1 < edge) == (edge <= b.1) && a.1 != b.1;
    crosses.then(|| (a.0 + (b.0 - a.0) * (edge - a.1) / (b.1 - a.1), edge))
}

/// Leaves of all points in one column of the picture the first, the lowest, the highest and the last.
pub fn thinned(path: &[(f64, f64)], column: f64) -> Path {
    let place = |point: &(f64, f64)| (point.0 / column).floor();
    path.chunk_by(|a, b| place(a) == place(b))
        .flat_map(|group| {
            let extreme = |sign: f64| {
                let higher =
                    |&a: &usize, &b: &usize| (sign * group[a].1).total_cmp(&(sign * group[b].1));
                (0..group.len()).max_by(higher).unwrap_or(0)
            };
            let mut kept = [0, extreme(1.0), extreme(-1.0), group.len() - 1];
            kept.sort_unstable();
            let mut kept = kept.to_vec();
            kept.dedup();
            kept.into_iter().map(|i| group[i])
        })
        .collect()
}

/// Cuts a line into dashes; the pattern is a dash, a gap, a dash and so on.
pub fn dashed(path: &[(f64, f64)], pattern: &[f64]) -> Vec<Path> {
    if pattern.is_empty() || pattern.iter().sum::<f64>() <= 0.0 {
        return vec![path.to_vec()];
    }
    let mut found = Vec::new();
    let (mut turn, mut left) = (0, pattern[0]);
    let mut dash: Path = path.first().copied().into_iter().collect();
    for pair in path.windows(2) {
        let (mut a, b) = (pair[0], pair[1]);
        loop {
            let length = (b.0 - a.0).hypot(b.1 - a.1);
            if length <= left {
                left -= length;
                if turn % 2 == 0 {
                    dash.push(b);
                }
                break;
            }
            a = (a.0 + (b.0 - a.0) * left / length, a.1 + (b.1 - a.1) * left / length);
            if turn % 2 == 0 {
                dash.push(a);
                found.push(std::mem::take(&mut dash));
            } else {
                dash = vec![a];
            }
            turn = (turn + 1) % pattern.len();
            left = pattern[turn];
        }
    }
    if dash.len() > 1 {
        found.push(dash);
    }
    found
}

/// How long a line is.
pub fn length(path: &[(f64, f64)]) -> f64 {
    path.windows(2).map(|pair| (pair[1].0 - pair[0].0).hypot(pair[1].1 - pair[0].1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_where_it_has_no_value() {
        let x = [0.0, 1.0, 2.0, 3.0];
        let y = [Some(1.0), None, Some(2.0), Some(3.0)];
        assert_eq!(pieces(&x, &y, false), [vec![(0.0, 1.0)], vec![(2.0, 2.0), (3.0, 3.0)]]);
        let steps = vec![(2.0, 2.0), (3.0, 2.0), (3.0, 3.0)];
        assert_eq!(pieces(&x, &y, true), [vec![(0.0, 1.0)], steps]);
    }

    #[test]
    fn a_band_is_broken_where_it_lacks_an_edge() {
        let x = [0.0, 1.0, 2.0, 3.0, 4.0];
        let low = [None, Some(1.0), Some(2.0), Some(f64::NAN), Some(0.0)];
        let high = [None, Some(5.0), Some(6.0), Some(7.0), Some(8.0)];
        let first = (vec![(1.0, 1.0), (2.0, 2.0)], vec![(1.0, 5.0), (2.0, 6.0)]);
        assert_eq!(bands(&x, &low, &high), [first, (vec![(4.0, 0.0)], vec![(4.0, 8.0)])]);
        assert!(bands(&x, &[None; 5], &high).is_empty());
    }

    #[test]
    fn a_line_leaves_its_panel_where_it_crosses_the_edge() {
        let peak = [(0.0, 0.0), (1.0, 4.0), (2.0, 0.0)];
        let left = vec![(0.0, 0.0), (0.5, 2.0)];
        assert_eq!(clipped(&peak, 0.0, 2.0), [left, vec![(1.5, 2.0), (2.0, 0.0)]]);
        assert_eq!(clipped(&peak, 0.0, 4.0), [peak.to_vec()]);
        assert!(clipped(&peak, 5.0, 6.0).is_empty());
        assert_eq!(clipped(&[(0.0, 0.0), (1.0, 9.0)], 3.0, 6.0).len(), 1);
    }

    #[test]
    fn a_dense_line_keeps_its_peaks() {
        let noise: Path =
            (0..1000).map(|i| (f64::from(i) / 100.0, f64::from(i * 7919 % 1000))).collect();
        let thin = thinned(&noise, 1.0);
        assert!(thin.len() <= 40);
        for column in 0..10 {
            let highest = |path: &Path| {
                path.iter()
                    .filter(|p| p.0.floor() == f64::from(column))
                    .map(|p| p.1)
                    .fold(f64::MIN, f64::max)
            };
            assert_eq!(highest(&thin), highest(&noise));
        }
    }

    #[test]
    fn dashes_and_gaps_go_around_corners() {
        let corner = [(0.0, 0.0), (3.0, 0.0), (3.0, 3.0)];
        let dashes = dashed(&corner, &[2.0, 1.0]);
        assert_eq!(dashes, [vec![(0.0, 0.0), (2.0, 0.0)], vec![(3.0, 0.0), (3.0, 2.0)]]);
        assert_eq!(dashed(&corner, &[4.0, 9.0]), [vec![(0.0, 0.0), (3.0, 0.0), (3.0, 1.0)]]);
        assert_eq!(dashed(&corner, &[]), [corner.to_vec()]);
        assert_eq!(length(&corner), 6.0);
    }
}
