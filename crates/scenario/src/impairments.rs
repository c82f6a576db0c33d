//! Impairments of a link: loss, delay variation, reordering and middlebox tampering.

use cwnd_quantity::{Duration, DurationDist, Time};
use cwnd_schema::SectionKeys;
use cwnd_schema::file::{
    At, Context, ReadValue, Section, SectionKeys as _, WriteValue, WrittenValue, inline, tables,
};

use crate::value_forms::{self, DelayStep, Format, delay_steps};

/// Impairments of a link, applied after its queue.
#[derive(Clone, Debug, PartialEq, SectionKeys)]
#[section(check = check, default)]
pub struct Impairments {
    /// Probability that a packet is lost at random, after the queue.
    #[default(0.0, "cwnd: a line without faults")]
    #[bounds(from 0.0, up_to 1.0; "it is a probability")]
    pub loss: f64,
    /// Distance between periodic losses: one packet in so many is lost, as in many closed forms.
    #[default("none", "cwnd: a line without faults")]
    #[bounds(from 1, up_to u32::MAX; "write \"none\" for a line that loses nothing")]
    pub loss_every: Option<u32>,
    /// Loss in bursts, in addition, by the model of Gilbert and Elliott: `{ p = 0.01, r = 0.25 }`,
    /// or netem's `loss gemodel 1% 25%`.
    #[entry(value_forms::BURST_LOSS)]
    #[default("none", "cwnd: a line without faults")]
    pub burst_loss: Option<BurstLoss>,
    /// Extra delay of each packet, drawn from this distribution; a time by itself is uniform
    /// between zero and it. Order is kept: a packet that would pass others arrives with them.
    #[default("0 ms", "cwnd: a line without faults")]
    pub jitter: DurationDist,
    /// Correlation time of the jitter, as on a radio link: the correlation of the underlying normal
    /// process falls by a factor e in this time. With zero each packet draws independently.
    #[default(
        "0 ms",
        "cwnd: packets that have nothing in common; 10 to 100 ms are a busy radio link's"
    )]
    #[idle(self.jitter == DurationDist::default(), "without `jitter`")]
    pub jitter_correlation: Duration,
    /// Probability that a packet is held back by `reorder_delay` in place of its jitter, so that
    /// later ones pass it.
    #[default(0.0, "cwnd: a line without faults")]
    #[bounds(from 0.0, up_to 1.0; "it is a probability")]
    pub reorder: f64,
    /// Time for which a reordered packet is held back.
    #[default("0 ms", "cwnd: a line without faults")]
    #[idle(self.reorder == 0.0, "without `reorder`")]
    pub reorder_delay: Duration,
    /// Changes of the propagation delay, as after a change of route: the delay added to `delay`
    /// from each time on, in order of time. A list such as `[{ at = "10 s", added = "50 ms" }]`, or
    /// a file of recorded delays, `"wifi.csv"`, with the columns `time_s` and `added_ms` (or
    /// another unit). Packets stay in order.
    #[entry(value_forms::DELAY_STEPS)]
    #[default([], "cwnd: a route that does not change")]
    pub delay_steps: Vec<(Time, Duration)>,
    /// Period after which `delay_steps` repeat; all steps are earlier than that.
    #[default("none", "cwnd: a route that changes once")]
    #[bounds(
        above Duration::ZERO;
        "time would never pass, write \"none\" for steps that are taken once"
    )]
    #[idle(self.delay_steps.is_empty(), "without `delay_steps`")]
    pub delay_steps_period: Option<Duration>,
}

/// Gilbert–Elliott loss: probabilities for each packet, by the state of the link that it finds.
#[derive(Clone, Copy, Debug, PartialEq, SectionKeys)]
pub struct BurstLoss {
    /// Probability for each packet that a good link turns bad behind it.
    #[required("none")]
    #[bounds(
        above 0.0, up_to 1.0;
        "it is a probability, write \"none\" in place of `burst_loss` for a link that never turns \
        bad"
    )]
    pub p: f64,
    /// Probability for each packet that a bad link turns good behind it; it is bad for 1/`r`
    /// packets in the mean.
    #[required("none")]
    #[bounds(
        above 0.0, up_to 1.0;
        "it is a probability, and a link that stays bad loses all that comes"
    )]
    pub r: f64,
    /// Probability that a packet passes a bad link; netem has the loss, `1-h`.
    #[default(0.0, "netem: all packets are lost there (Gilbert 1960)")]
    #[bounds(from 0.0, below 1.0; "it is a probability, and a bad link loses packets")]
    pub h: f64,
    /// Probability that a packet passes a good link; netem has the loss, `1-k`.
    #[default(1.0, "netem: no packet is lost there (Gilbert 1960)")]
    #[bounds(from 0.0, up_to 1.0; "it is a probability")]
    pub k: f64,
}

/// Tampering of a middlebox at the far end of a link with options of explicit feedback.
#[derive(Clone, Copy, Debug, PartialEq, SectionKeys)]
#[section(default)]
pub struct Tampering {
    /// Probability that a middlebox at the far end removes an option of explicit feedback from a
    /// packet. In data, that is a header of XCP, RCP or MLCP; in an ACK, the receiver's report of
    /// it, of load or of code points. In a dumbbell it applies in both directions.
    #[default(0.0, "cwnd: a middlebox that knows them, or none")]
    #[bounds(from 0.0, up_to 1.0; "it is a probability")]
    pub option_loss: f64,
    /// Probability that it flips one bit of such an option, each with the same probability, and
    /// corrects the checksum. In a dumbbell it applies in both directions.
    #[default(0.0, "cwnd: a middlebox that knows them, or none")]
    #[bounds(from 0.0, up_to 1.0; "it is a probability")]
    pub option_damage: f64,
}

/// Reports impairments that contradict each other or have no effect.
fn check(found: &PartialImpairments, section: &Section<'_>, cx: &mut Context<'_>) {
    let PartialImpairments { jitter, jitter_correlation, reorder, reorder_delay, .. } = found;
    let mut report = |key: &str, message: &str, help: &str| {
        cx.sink.error(section.span_of(key), section.path_of(key), message).help(help);
    };
    if jitter_correlation.is_some_and(|time| time > Duration::ZERO)
        && jitter.as_ref().is_some_and(|of| of.0.at_deviate(0.0).is_none())
    {
        report(
            "jitter",
            "a choice between distributions can't hang together",
            "give its points, as in `cdf(file.csv)`, or leave out `jitter_correlation`",
        );
    }
    if let (Some(steps), Some(Some(period))) = (&found.delay_steps, found.delay_steps_period)
        && let Some((last, _)) = steps.last().filter(|(at, _)| at.since(Time::ZERO) >= period)
    {
        report(
            "delay_steps_period",
            &format!("the last step is at {}, which never comes", last.since(Time::ZERO)),
            "make `delay_steps_period` longer than that",
        );
    }
    let reorders = reorder.is_some_and(|p| p > 0.0);
    if reorders && *reorder_delay == Some(Duration::ZERO) {
        report(
            "reorder",
            "packets that are held back for no time are not reordered",
            "set `reorder_delay`",
        );
    }
    if reorders && found.delay_steps.as_ref().is_some_and(|steps| !steps.is_empty()) {
        report(
            "delay_steps",
            "what is held back by `reorder` would go the old way",
            "keep `reorder` or `delay_steps`",
        );
    }
}

/// Reads probabilities of burst loss, or `"none"`.
impl ReadValue<Format> for Option<BurstLoss> {
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
        if at.node.text() == Some("none") {
            return Some(None);
        }
        let Some(table) = at.node.table() else {
            at.wrong_kind("a table such as { p = 0.01, r = 0.25 }, or \"none\"", cx);
            return None;
        };
        let section = Section::new(table, &[BurstLoss::KEYS], at.path, at.node.span, cx);
        BurstLoss::read(&section, cx).map(Some)
    }
}

impl WriteValue<Format> for Option<BurstLoss> {
    fn write(&self) -> WrittenValue<'_> {
        let inline = |loss| inline(loss, |_| true);
        WrittenValue::Line(self.as_ref().map_or_else(|| "\"none\"".to_owned(), inline))
    }
}

/// Reads steps of the delay, from a list or from a file of recorded delays.
impl ReadValue<Format> for Vec<(Time, Duration)> {
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
        delay_steps(at, cx)
    }
}

impl WriteValue<Format> for Vec<(Time, Duration)> {
    fn write(&self) -> WrittenValue<'_> {
        let steps = self.iter().map(|(at, added)| DelayStep { at: Duration(at.0), added: *added });
        tables(steps)
    }
}

#[cfg(test)]
mod tests {
    use cwnd_schema::Share;

    use super::*;
    use crate::model::Record;

    #[test]
    fn defaults_are_what_their_toml_says() {
        let faults = Impairments::default();
        assert_eq!((faults.loss, faults.loss_every, faults.burst_loss), (0.0, None, None));
        assert_eq!((faults.reorder_delay, faults.delay_steps), (Duration::ZERO, vec![]));
        assert_eq!(Tampering::default(), Tampering { option_loss: 0.0, option_damage: 0.0 });
        assert_eq!(Record::default(), Record { requests: Share::ALL, flows: Share::ALL });
    }
}
