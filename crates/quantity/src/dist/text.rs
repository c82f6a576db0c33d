//! Reads and writes distributions as text: `"min(pareto(1.2, 30 kB), 1 GB)"`, and names some of
//! sizes.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::shape::{Replaced, Shape, Table, Width};
use crate::parse::ParseError;

/// Families of distributions: the first word, and the form in which each is written.
pub const FORMS: &[(&str, &str)] = &[
    ("uniform", "uniform(low, high)"),
    ("exponential", "exponential(mean)"),
    ("pareto", "pareto(shape, mean) or pareto(shape, scale least)"),
    ("lomax", "lomax(shape, mean) or lomax(shape, scale value)"),
    ("weibull", "weibull(shape, mean) or weibull(shape, scale value)"),
    ("lognormal", "lognormal(median, sigma)"),
    ("cdf", "cdf(value: probability, ...) or cdf(file.csv)"),
    ("min", "min(distribution, most)"),
    ("mix", "mix(share distribution, ...)"),
    ("replace", "replace(distribution below limit, share distribution)"),
];
/// Deepest nesting of distributions.
const MOST_LEVELS: usize = 16;

type Parsed<T> = Result<T, ParseError>;

/// Reader of distributions of one quantity.
pub(super) struct Reader<'r> {
    /// Function that reads the quantity: time, size or count.
    pub quantity: &'r dyn Fn(&str) -> Parsed<u64>,
    /// Example of the quantity, for messages.
    pub example: &'static str,
    /// Named distributions of this quantity.
    pub named: &'static [(&'static str, &'static str)],
}

impl Reader<'_> {
    /// Reads a constant or a distribution.
    pub fn read(&self, text: &str) -> Parsed<Shape> {
        self.shape(text, MOST_LEVELS)
    }

    fn shape(&self, text: &str, levels: usize) -> Parsed<Shape> {
        let text = text.trim();
        let Some(levels) = levels.checked_sub(1) else {
            return fail(format!(
                "distributions within each other go {MOST_LEVELS} deep, no deeper"
            ));
        };
        if let Some((_, meaning)) = self.named.iter().find(|(name, _)| *name == text) {
            return self.shape(meaning, levels);
        }
        let Some((name, rest)) = text.split_once('(') else {
            if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return fail(format!(
                    "`{text}` is neither a quantity such as {} nor one of {}",
                    self.example,
                    self.forms()
                ));
            }
            return (self.quantity)(text).map(Shape::Constant);
        };
        let Some(inner) = rest.strip_suffix(')') else {
            return fail(format!("`{text}` lacks a closing `)`"));
        };
        let arguments: Vec<&str> = split(inner, ',').into_iter().map(str::trim).collect();
        let name = name.trim();
        match (name, arguments.as_slice()) {
            ("uniform", &[low, high]) => match ((self.quantity)(low)?, (self.quantity)(high)?) {
                (l, h) if l > h => {
                    fail(format!("`{low}` is above `{high}`: write the lower bound first"))
                }
                (l, h) => Ok(Shape::Uniform(l, h)),
            },
            ("exponential", &[mean]) => Ok(Shape::Exponential(self.positive(name, mean)?)),
            ("pareto" | "lomax", &[shape, width]) => {
                let (shape, width) = (positive_number(name, shape)?, self.width(name, width)?);
                if shape <= 1.0 && matches!(width, Width::Mean(_)) {
                    return fail(format!(
                        "a Pareto distribution of shape {shape} has no mean: \
                         it needs a shape above 1, or a `scale`, as in {name}({shape}, scale {})",
                        self.example.trim_matches('"')
                    ));
                }
                Ok(if name == "pareto" {
                    Shape::Pareto(shape, width)
                } else {
                    Shape::Lomax(shape, width)
                })
            }
            ("weibull", &[shape, width]) => match positive_number(name, shape)? {
                k if !(0.05..=100.0).contains(&k) => fail(format!(
                    "the shape of a Weibull distribution goes from 0.05 to 100, not to {k}"
                )),
                k => Ok(Shape::Weibull(k, self.width(name, width)?)),
            },
            ("lognormal", &[median, sigma]) => match number(sigma)? {
                s if s < 0.0 => fail(format!("a deviation can't be negative: {s}")),
                s => Ok(Shape::LogNormal(self.positive(name, median)?, s)),
            },
            ("cdf", &[file]) if !file.contains(':') => fail(format!(
                "`{file}` is no file that could be read here: write points, as in cdf({}: 1)",
                self.example.trim_matches('"')
            )),
            ("cdf", points) => self.table(points),
            ("min", &[of, most]) => {
                let (of, most) = (self.shape(of, levels)?, self.positive(name, most)?);
                Ok(Shape::AtMost(Arc::new(of), most))
            }
            ("mix", parts) => self.mix(parts, levels),
            ("replace", &[what, by]) => self.replaced(what, by, levels),
            (name, list) if let Some((_, form)) = FORMS.iter().find(|(word, _)| *word == name) => {
                let s = if list.len() == 1 { "" } else { "s" };
                fail(format!("`{name}` does not take {} value{s}: write {form}", list.len()))
            }
            (other, _) => {
                fail(format!("unknown distribution `{other}`; there are {}", self.forms()))
            }
        }
    }

    fn forms(&self) -> String {
        let words = FORMS.iter().map(|(word, _)| *word);
        let named = self.named.iter().map(|(name, _)| *name);
        words.chain(named).collect::<Vec<_>>().join(", ")
    }

    fn positive(&self, name: &str, text: &str) -> Parsed<u64> {
        match (self.quantity)(text)? {
            0 => fail(format!("{name} around zero is always zero")),
            v => Ok(v),
        }
    }

    fn width(&self, name: &str, text: &str) -> Parsed<Width> {
        match text.strip_prefix("scale ") {
            Some(scale) => self.positive(name, scale).map(Width::Scale),
            None => self.positive(name, text).map(Width::Mean),
        }
    }

    fn table(&self, arguments: &[&str]) -> Parsed<Shape> {
        let mut points = Vec::with_capacity(arguments.len());
        for point in arguments {
            let Some((value, p)) = point.split_once(':') else {
                return fail(format!(
                    "`{point}` is no point of a distribution: write it like {}: 0.5",
                    self.example.trim_matches('"')
                ));
            };
            points.push(((self.quantity)(value.trim())?, number(p.trim())?));
        }
        let table = Table::new(points);
        let table =
            table.map_err(|(i, why)| ParseError(format!("point {} of `cdf`: {why}", i + 1)))?;
        Ok(Shape::Table(Arc::new(table)))
    }

    fn mix(&self, arguments: &[&str], levels: usize) -> Parsed<Shape> {
        let mut parts = Vec::with_capacity(arguments.len());
        for part in arguments {
            parts.push(self.share(part, levels)?);
        }
        let sum: f64 = parts.iter().map(|(share, _)| share).sum();
        if (sum - 1.0).abs() > 1e-9 {
            return fail(format!("the shares of a mixture add up to 1, not to {sum}"));
        }
        Ok(Shape::Mix(parts.into()))
    }

    fn replaced(&self, what: &str, by: &str, levels: usize) -> Parsed<Shape> {
        let Some((of, below)) =
            what.rsplit_once(" below ").filter(|(_, below)| !below.contains(')'))
        else {
            return fail(format!(
                "`{what}` does not say what is replaced: write replace(distribution below limit, \
                 share distribution)"
            ));
        };
        let (base, bound) = (self.shape(of, levels)?, self.positive("a limit", below)?);
        let (probability, replacement) = self.share(by, levels)?;
        Ok(Shape::Replaced(Arc::new(Replaced { base, bound, probability, replacement })))
    }

    /// Reads a probability and its distribution: `0.1 exponential(30 kB)`.
    fn share(&self, text: &str, levels: usize) -> Parsed<(f64, Shape)> {
        let wrong = || ParseError(format!("`{text}` lacks its share: write it like `0.5 {text}`"));
        let (share, of) = text.split_once(' ').ok_or_else(wrong)?;
        let share: f64 = share.parse().map_err(|_| wrong())?;
        if !(share > 0.0 && share <= 1.0) {
            return fail(format!("a share is above 0 and at most 1, not {share}"));
        }
        Ok((share, self.shape(of, levels)?))
    }
}

fn fail<T>(message: String) -> Parsed<T> {
    Err(ParseError(message))
}

/// Splits at the separators that are outside parentheses.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if c == separator && depth == 0 => {
                parts.push(&text[start..i]);
                start = i + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn number(text: &str) -> Parsed<f64> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x),
        _ => fail(format!("`{text}` is not a plain number")),
    }
}

fn positive_number(name: &str, text: &str) -> Parsed<f64> {
    match number(text)? {
        x if x > 0.0 => Ok(x),
        x => fail(format!("the shape of `{name}` is above 0, not {x}")),
    }
}

/// Writes a distribution as text that reads back to it.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    shape: &Shape,
    quantity: &dyn Fn(u64) -> String,
) -> fmt::Result {
    let width = |width: Width| match width {
        Width::Mean(mean) => quantity(mean),
        Width::Scale(scale) => format!("scale {}", quantity(scale)),
    };
    match shape {
        Shape::Constant(v) => f.write_str(&quantity(*v)),
        Shape::Uniform(low, high) => write!(f, "uniform({}, {})", quantity(*low), quantity(*high)),
        Shape::Exponential(mean) => write!(f, "exponential({})", quantity(*mean)),
        Shape::Pareto(a, w) => write!(f, "pareto({a}, {})", width(*w)),
        Shape::Lomax(a, w) => write!(f, "lomax({a}, {})", width(*w)),
        Shape::Weibull(k, w) => write!(f, "weibull({k}, {})", width(*w)),
        Shape::LogNormal(median, sigma) => write!(f, "lognormal({}, {sigma})", quantity(*median)),
        Shape::Table(table) => {
            for (i, (value, p)) in table.points().iter().enumerate() {
                write!(f, "{}{}: {p}", if i == 0 { "cdf(" } else { ", " }, quantity(*value))?;
            }
            f.write_str(")")
        }
        Shape::Mix(parts) => {
            for (i, (share, part)) in parts.iter().enumerate() {
                write!(f, "{}{share} ", if i == 0 { "mix(" } else { ", " })?;
                write(f, part, quantity)?;
            }
            f.write_str(")")
        }
        Shape::AtMost(of, most) => {
            f.write_str("min(")?;
            write(f, of, quantity)?;
            write!(f, ", {})", quantity(*most))
        }
        Shape::Replaced(r) => {
            f.write_str("replace(")?;
            write(f, &r.base, quantity)?;
            write!(f, " below {}, {} ", quantity(r.bound), r.probability)?;
            write(f, &r.replacement, quantity)?;
            f.write_str(")")
        }
    }
}

/// Names, and the text each stands for. A resolved scenario contains the text.
pub(super) const SIZES: &[(&str, &str)] = &[
    // Mondal & Kuzmanovic 2008, § 3.2, Trace-I: each size of Trace-II above 10 kB is cut to 10 kB.
    ("mondal-trace-1", "min(mondal-trace-2, 10 kB)"),
    // Trace-II: web responses with a mean of about 7 kB and up to gigabytes. The paper takes them
    // from a generator (Cao et al. 2004, PackMime), which ns-2 has, too. There a third of the
    // responses validate cached objects (some 145 B). The rest have a median of 2.3 kB and a tail
    // that falls like x^−1.23. python/cwnd/studies/questions/traces/page.md has both curves.
    (
        "mondal-trace-2",
        "mix(0.335 lognormal(145 B, 0.3), 0.565 lognormal(1600 B, 1.3), \
         0.1 pareto(1.23, scale 9 kB))",
    ),
    // Trace-III: one in a hundred of the sizes of Trace-II below 5 kB is replaced by a draw with a
    // mean of 10 MB.
    ("mondal-trace-3", "replace(mondal-trace-2 below 5 kB, 0.01 exponential(10 MB))"),
];
