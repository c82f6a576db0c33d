//! Capture files, merged into captures that consumers read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cwnd_quantity::Time;

use crate::connection::Duplicates;
use crate::merge::{
    Consumer, Count, Counts, Error, Input, MOST_OPEN, MOST_PARTS, Part, Stop, merged,
};

/// Reads files, merged in time order into captures, each with a consumer of its own.
pub fn captures<C: Consumer>(
    inputs: &[Input<'_>],
    before: usize,
    go_on: &mut dyn FnMut() -> bool,
    consumer: &dyn Fn() -> C,
) -> Result<(Vec<C>, Counts), Error> {
    let mut splits = vec![Vec::new(); inputs.len()];
    loop {
        match attempt(inputs, before, &splits, go_on, consumer) {
            Ok(read) => return Ok(read),
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Part { file, block, back }) => {
                let place = file as usize - before;
                let further = Part::splits(&inputs[place], block, go_on)?;
                for (block, back) in std::iter::once((block, back)).chain(further) {
                    if splits[place].len() + 1 == MOST_PARTS {
                        let name = inputs[place].name.clone();
                        return Err(Error::Disordered { name, back });
                    }
                    splits[place].push(block);
                }
            }
        }
    }
}

/// Reads all parts of all files; fails at the first block that is out of order beyond the window.
fn attempt<C: Consumer>(
    inputs: &[Input<'_>],
    before: usize,
    splits: &[Vec<u64>],
    go_on: &mut dyn FnMut() -> bool,
    consumer: &dyn Fn() -> C,
) -> Result<(Vec<C>, Counts), Stop> {
    let mut captures: BTreeMap<Option<PathBuf>, Vec<Part<'_, '_>>> = BTreeMap::new();
    for ((input, file), splits) in inputs.iter().zip(before as u32..).zip(splits) {
        let parts = Part::of(input, file, splits, inputs.len() <= MOST_OPEN, go_on)?;
        let unset = parts.iter().any(|part| part.first.is_some_and(|first| first < CLOCK_SET));
        captures.entry(unset.then(|| directory(&input.name))).or_default().extend(parts);
    }
    let (mut consumers, mut counts) = (Vec::new(), Counts::default());
    for parts in captures.into_values() {
        let mut duplicates = Duplicates::default();
        let mut copies = 0;
        let mut consumer = consumer();
        counts += merged(parts, go_on, |segment| {
            let since = duplicates.since(segment);
            copies += u64::from(consumer.on_segment(segment, since));
        })?;
        consumers.push(consumer);
        counts.add(Count::Duplicates, copies);
        counts.0[Count::Segments as usize] -= copies;
    }
    counts.add(Count::StepsBack, splits.iter().map(|splits| splits.len() as u64).sum());
    Ok((consumers, counts))
}

/// Returns the directory of a file, the same for all spellings of its name.
fn directory(name: &str) -> PathBuf {
    let parent = Path::new(name).parent().unwrap_or(Path::new(""));
    Path::new(".").join(parent).canonicalize().unwrap_or_else(|_| parent.to_owned())
}

/// Capture time below which a clock counts as not set (in 1979): simulations and experiments start
/// their clock at zero.
const CLOCK_SET: Time = Time(10 * 365 * 86_400 * 1_000_000_000);
