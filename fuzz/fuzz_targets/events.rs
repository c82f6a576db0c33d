//! Fuzz target of the event queues: any sequence of pushes and pops gives the same order as a
//! reference heap.

#![cfg_attr(not(test), no_main)]

#[cfg(test)]
use super::bytes;
#[cfg(not(test))]
#[path = "../bytes.rs"]
mod bytes;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cwnd_sim::parts::{Calendar, Heap, NO_KEY, Queue};

use bytes::Bytes;

/// Limit on the keys pushed: more take longer and add no coverage, because a queue uses a calendar
/// from 513 keys on.
const MOST_NUMBERS: u64 = 1200;

/// Generator of keys due after the last one popped; a serial number in the low bits makes equal
/// times differ.
struct Numbers {
    now: u64,
    made: u64,
}

impl Numbers {
    /// Returns a key that is due `after` nanoseconds after the last one popped.
    fn after(&mut self, after: u64) -> u128 {
        self.made += 1;
        u128::from(self.now.saturating_add(after)) << 64 | u128::from(self.made)
    }
}

/// Reference: a min-heap of the standard library.
type Model = BinaryHeap<Reverse<u128>>;

fn take(queue: &mut Queue, model: &mut Model, numbers: &mut Numbers) -> bool {
    let least = queue.min();
    let expected = model.pop().map_or(NO_KEY, |Reverse(number)| number);
    assert_eq!(least, expected);
    if least == NO_KEY {
        return false;
    }
    queue.remove_min();
    numbers.now = (least >> 64) as u64;
    true
}

/// Asserts that the next 16 keys, or all if there are fewer, are known and the least ones. Checks
/// nothing without a calendar.
fn known(queue: &mut Queue, model: &Model) {
    queue.min();
    if !queue.has_calendar() {
        return;
    }
    let mut sorted: Vec<u128> = model.iter().map(|&Reverse(number)| number).collect();
    sorted.sort_unstable();
    let ahead: Vec<u128> = (0..16).map_while(|n| queue.peek(n)).collect();
    assert_eq!(ahead, sorted[..ahead.len()]);
    assert!(ahead.len() >= 16.min(sorted.len()), "{} known of {}", ahead.len(), sorted.len());
}

fn queue(bytes: &mut Bytes<'_>) {
    let (mut queue, mut model) = (Queue::default(), Model::new());
    let mut numbers = Numbers { now: bytes.wide(), made: 0 };
    while !bytes.is_empty() {
        match bytes.below(8) {
            // Pushes several at equal distances, which may be zero.
            0..=2 => {
                let (first, apart) = (bytes.wide(), bytes.wide());
                let many = if bytes.flag() { 40 } else { 1 };
                for i in 0..bytes.below(16) as u64 * many {
                    if numbers.made < MOST_NUMBERS {
                        let number = numbers.after(first.saturating_add(i * apart));
                        queue.push(number);
                        model.push(Reverse(number));
                    }
                }
            }
            3 | 4 => {
                let many = if bytes.flag() { 40 } else { 1 };
                for _ in 0..bytes.below(16) * many {
                    take(&mut queue, &mut model, &mut numbers);
                }
            }
            // Pushes one for each one popped, as a simulation does.
            5 | 6 => {
                let after = bytes.wide();
                for i in 0..u64::from(bytes.byte()) {
                    if !take(&mut queue, &mut model, &mut numbers) || numbers.made == MOST_NUMBERS {
                        break;
                    }
                    let number = numbers.after(after.wrapping_mul(i) % (after + 1));
                    queue.push(number);
                    model.push(Reverse(number));
                }
            }
            _ => known(&mut queue, &model),
        }
        assert_eq!(queue.iter().count(), model.len());
    }
    while take(&mut queue, &mut model, &mut numbers) {}
}

/// Tests the heap alone, also with numbers below those already popped.
fn heap(bytes: &mut Bytes<'_>) {
    let (mut heap, mut model) = (Heap::default(), Model::new());
    let mut made = 0;
    while !bytes.is_empty() {
        if bytes.flag() {
            made += 1;
            let number = u128::from(bytes.wide()) << 64 | made;
            heap.push(number);
            model.push(Reverse(number));
        } else {
            let least = heap.min();
            assert_eq!(least, model.pop().map_or(NO_KEY, |Reverse(number)| number));
            if least != NO_KEY {
                heap.remove_min();
            }
        }
        assert_eq!((heap.len(), heap.iter().count()), (model.len(), model.len()));
    }
}

/// Tests the calendar alone: buckets come in order, and together they hold all that was pushed.
fn calendar(bytes: &mut Bytes<'_>) {
    let mut numbers = Numbers { now: bytes.wide(), made: 0 };
    let apart = bytes.wide();
    let first: Vec<u128> =
        (0..u64::from(bytes.byte()) + 1).map(|i| numbers.after(i * apart)).collect();
    let start = first[0];
    let mut calendar = Calendar::new(first.clone(), start);
    let mut model: Model = first.into_iter().map(Reverse).collect();
    while !bytes.is_empty() {
        match bytes.below(3) {
            0 => {
                let (after, many) = (bytes.wide(), bytes.below(64) as u64);
                for i in 0..many {
                    if numbers.made < MOST_NUMBERS {
                        let number = numbers.after(after.saturating_mul(i)).max(calendar.start());
                        // The serial number makes all keys distinct.
                        let number = number | u128::from(numbers.made);
                        calendar.push(number);
                        model.push(Reverse(number));
                    }
                }
            }
            1 => calendar.fit(calendar.start()),
            _ => {
                let Some(count) = calendar.next_bucket() else { continue };
                let mut bucket = Vec::new();
                calendar.take_bucket(|numbers| bucket.extend_from_slice(numbers));
                assert_eq!(bucket.len(), count);
                bucket.sort_unstable();
                for number in bucket {
                    assert_eq!(Some(Reverse(number)), model.pop());
                    numbers.now = (number >> 64) as u64;
                }
                assert!(model.peek().is_none_or(|&Reverse(next)| next >= calendar.start()));
            }
        }
        assert_eq!((calendar.len(), calendar.iter().count()), (model.len(), model.len()));
    }
}

pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    match bytes.below(4) {
        0 => heap(&mut bytes),
        1 => calendar(&mut bytes),
        _ => queue(&mut bytes),
    }
}

#[cfg(not(test))]
libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));
