//! Parts of a stack: mechanisms that an experiment takes from a stack or adds to one.

use cwnd_schema::Params as _;

use super::{AckRule, LossRule, Params};
use crate::cwnd_validation::{GrowBy, LimitedBy, RestartWindow};
use crate::prr::PrrRule;

/// A part: a mechanism of a stack that can be added or removed.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Name in `with` and `without`.
    pub name: &'static str,
    /// Description for the reference.
    pub doc: &'static str,
    /// Name of the part without which this one has no effect.
    pub needs: Option<&'static str>,
    /// Removes the part from the parameters.
    off: fn(&mut Params),
    /// Adds the part to the parameters.
    on: fn(&mut Params),
}

impl Part {
    /// Creates a part that needs no other one, from the functions that remove and add it.
    const fn flag(name: &'static str, doc: &'static str, [off, on]: [fn(&mut Params); 2]) -> Self {
        Self { name, doc, needs: None, off, on }
    }

    /// Returns the part, marked as without effect without the part of this name.
    const fn needing(self, part: &'static str) -> Self {
        Self { needs: Some(part), ..self }
    }

    /// Returns the part of this name, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PARTS.iter().find(|part| part.name == name)
    }

    /// `true` if its removal would change the effective parameters of an endpoint.
    #[must_use]
    pub fn is_in(&self, params: &Params) -> bool {
        let mut without = params.clone();
        (self.off)(&mut without);
        effective(without) != effective(params.clone())
    }

    /// Removes the part from an endpoint's parameters.
    pub fn take_from(&self, params: &mut Params) {
        (self.off)(params);
    }

    /// Adds the part to an endpoint's parameters.
    pub fn add_to(&self, params: &mut Params) {
        (self.on)(params);
    }
}

/// Returns the parameters with those reset that have no effect.
fn effective(mut params: Params) -> Params {
    params.idle().iter().for_each(|idle| params.reset(idle.key));
    params
}

/// Turns PRR on, with this rule.
fn with_prr_by(params: &mut Params, rule: PrrRule) {
    params.prr.prr = true;
    params.prr.prr_rule = rule;
}

/// Turns PRR off if it is on with this rule.
fn without_prr_by(params: &mut Params, rule: PrrRule) {
    if params.prr.prr && params.prr.prr_rule == rule {
        without_prr(params);
    }
}

/// Turns PRR off, in recovery and after an ECN-echo.
fn without_prr(params: &mut Params) {
    params.prr.prr = false;
    params.prr.prr_rule = Params::default().prr.prr_rule;
    params.prr.prr_on_ecn = false;
}

/// All parts, in the order of the reference.
pub const PARTS: &[Part] = &[
    Part {
        name: "rack",
        doc: "Losses by time (RFC 8985), and what a stack has with it: accounting in whole \
              segments, recovery from losses after a timeout. Without it losses are found by RFC \
              6675 § 4.",
        needs: None,
        off: |p| {
            if p.detection.loss_rule == LossRule::Rack {
                p.detection.loss_rule = LossRule::Rfc6675;
            }
            p.detection.whole_segments = false;
            p.recovery.recovers_in_loss = false;
            p.detection.tail_loss_probe = false;
            p.rtt.rtt_from_notes = false;
        },
        on: |p| p.detection.loss_rule = LossRule::Rack,
    },
    Part {
        name: "fack",
        doc: "Losses by forward acknowledgement (Mathis & Mahdavi 1996): `dup_thresh` counts from \
              the highest SACKed segment.",
        needs: None,
        off: |p| {
            if p.detection.loss_rule == LossRule::Fack {
                p.detection.loss_rule = LossRule::Rfc6675;
            }
        },
        on: |p| p.detection.loss_rule = LossRule::Fack,
    },
    Part::flag(
        "tlp",
        "Probes of a lost tail (RFC 8985 § 7).",
        [|p| p.detection.tail_loss_probe = false, |p| p.detection.tail_loss_probe = true],
    )
    .needing("rack"),
    Part::flag(
        "own-rtt-notes",
        "RTT samples from the sender's own log of send times, also by SACK.",
        [|p| p.rtt.rtt_from_notes = false, |p| p.rtt.rtt_from_notes = true],
    )
    .needing("rack"),
    Part {
        name: "lost-retransmissions",
        doc: "Retransmissions that are lost are found without the timer.",
        needs: None,
        off: |p| {
            p.detection.lost_retransmissions = false;
            p.recovery.lost_retransmissions_reduce = false;
        },
        on: |p| p.detection.lost_retransmissions = true,
    },
    Part {
        name: "prr",
        doc: "Reductions spread over the recovery, by the rule that the stack has, and over a \
              round trip for ECN-echoes where the stack has that. Added to a stack it is \
              proportional rate reduction by RFC 9937.",
        needs: None,
        off: without_prr,
        on: |p| with_prr_by(p, PrrRule::Rfc9937),
    },
    Part {
        name: "prr-rfc6937",
        doc: "Proportional rate reduction for losses by RFC 6937, with the slow-start reduction \
              bound (PRR-SSRB).",
        needs: None,
        off: |p| without_prr_by(p, PrrRule::Rfc6937),
        on: |p| with_prr_by(p, PrrRule::Rfc6937),
    },
    Part {
        name: "rate-halving",
        doc: "Rate halving: a segment for every two delivered, in place of proportional rate \
              reduction.",
        needs: None,
        off: |p| without_prr_by(p, PrrRule::RateHalving),
        on: |p| with_prr_by(p, PrrRule::RateHalving),
    },
    Part::flag(
        "prr-on-ecn",
        "Proportional rate reduction for ECN-echoes.",
        [|p| p.prr.prr_on_ecn = false, |p| p.prr.prr_on_ecn = true],
    ),
    Part::flag(
        "rescue",
        "Retransmission of holes that are not known to be lost, and of the tail (RFC 6675 § 4, \
         rules 3 and 4 of NextSeg).",
        [|p| p.recovery.rescue_holes = false, |p| p.recovery.rescue_holes = true],
    ),
    Part::flag(
        "dsack",
        "D-SACK blocks from the receiver (RFC 2883), by which RACK adapts its window and takes \
         reductions back.",
        [|p| p.acks.dsack = false, |p| p.acks.dsack = true],
    ),
    Part::flag(
        "frto",
        "Detection of spurious timeouts by F-RTO (RFC 5682).",
        [|p| p.spurious.timeout_frto = false, |p| p.spurious.timeout_frto = true],
    ),
    Part::flag(
        "eifel",
        "Detection of spurious timeouts by echoed timestamps (RFC 3522).",
        [|p| p.spurious.timeout_eifel = false, |p| p.spurious.timeout_eifel = true],
    ),
    Part::flag(
        "timeout-threshold",
        "A timeout in a window that was already reduced keeps the slow-start threshold.",
        [
            |p| p.recovery.timeout_keeps_threshold = false,
            |p| p.recovery.timeout_keeps_threshold = true,
        ],
    ),
    Part::flag(
        "old-acks",
        "SACK blocks of ACKs that a later ACK has overtaken count.",
        [|p| p.recovery.sack_in_old_acks = false, |p| p.recovery.sack_in_old_acks = true],
    ),
    Part::flag(
        "reneging",
        "A receiver that discards SACKed data is found half a round trip later.",
        [|p| p.recovery.reneging_shortens_rto = false, |p| p.recovery.reneging_shortens_rto = true],
    ),
    Part {
        name: "quick-acks",
        doc: "ACKs at once while the receive window grows, and at the end of a burst (PSH); behind \
              a hole at most one a millisecond; delays that follow the pauses between segments.",
        needs: None,
        off: |p| {
            p.acks.ack_policy = AckRule::Rfc5681;
            p.acks.push_bursts = false;
        },
        on: |p| {
            p.acks.ack_policy = AckRule::Quick;
            p.acks.push_bursts = true;
        },
    },
    Part::flag(
        "push",
        "A burst of several segments ends with PSH.",
        [|p| p.acks.push_bursts = false, |p| p.acks.push_bursts = true],
    )
    .needing("quick-acks"),
    Part {
        name: "delivered-growth",
        doc: "The window grows by what was delivered since the previous ACK, SACKed data included.",
        needs: None,
        off: |p| p.validation.grow_by = GrowBy::Acknowledged,
        on: |p| p.validation.grow_by = GrowBy::Delivered,
    },
    Part::flag(
        "exit-growth",
        "The window also grows with the ACK that ends fast recovery.",
        [|p| p.validation.grow_on_exit = false, |p| p.validation.grow_on_exit = true],
    ),
    Part {
        name: "cwnd-validation",
        doc: "A window that is not used does not grow (RFC 7661 § 4.3).",
        needs: None,
        off: |p| p.validation.cwnd_limited = LimitedBy::Always,
        on: |p| p.validation.cwnd_limited = LimitedBy::Last,
    },
    Part {
        name: "idle-restart",
        doc: "The window shrinks after an idle time longer than the timeout (RFC 5681 § 4.1).",
        needs: None,
        off: |p| {
            p.validation.idle_restart = false;
            p.validation.restart_window = RestartWindow::Initial;
        },
        on: |p| {
            p.validation.idle_restart = true;
            p.validation.restart_window = RestartWindow::Initial;
        },
    },
    Part {
        name: "zero-window-probes",
        doc: "A closed receive window is probed by a segment without data, and the answer \
              restarts the time to the next probe.",
        needs: None,
        off: |p| p.probing = Default::default(),
        on: |p| {
            p.probing.window_probe = super::WindowProbe::Before;
            p.probing.probe_answer_restarts = true;
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(name: &str) -> Params {
        let mut params = Params::default();
        assert!(params.apply_preset(name), "{name}");
        params
    }

    #[test]
    fn a_part_is_in_a_stack_once_it_is_added_and_no_longer_once_it_is_taken() {
        for part in PARTS {
            let mut params = preset("linux");
            part.take_from(&mut params);
            assert!(!part.is_in(&params), "{} is taken", part.name);
            part.add_to(&mut params);
            assert!(part.is_in(&params), "{} is added", part.name);
        }
    }

    #[test]
    fn a_parameter_that_is_no_key_is_set_by_its_part() {
        let stacks: Vec<Params> =
            Params::default().presets().iter().map(|stack| preset(stack.name)).collect();
        for field in Params::FIELDS {
            let Some(name) = field.part else { continue };
            let part = Part::named(name).expect(name);
            let sets = |stack: &Params| {
                let mut without = stack.clone();
                part.take_from(&mut without);
                without.get(field.name) != stack.get(field.name)
            };
            assert!(stacks.iter().any(sets), "{name} sets {}", field.name);
        }
    }

    #[test]
    fn a_key_says_what_experiment_it_is_for() {
        let keys = Params::FIELDS.iter().filter(|field| field.part.is_none());
        for field in keys {
            assert!(field.doc.contains(" Serves "), "{}", field.name);
        }
    }

    #[test]
    fn names_of_parts_differ() {
        for (i, part) in PARTS.iter().enumerate() {
            assert!(PARTS[..i].iter().all(|other| other.name != part.name), "{}", part.name);
            let needed = part.needs.map(Part::named);
            assert!(needed.is_none_or(|part| part.is_some()), "{}", part.name);
        }
    }
}
