//! Every key of a scenario file that is not a parameter of an algorithm: what it takes, its default, and who says so.
//! The reader, the reference and the schema all come from these tables.

use cwnd_quantity::Duration;

use crate::takes::{self, Takes};
use cwnd_schema::{
    Bounds, Kind,
    Quantity::{Count, Number, Span},
};

/// One key of a section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    pub form: Form,
    pub fallback: Fallback,
    pub doc: &'static str,
    pub source: &'static str,
    /// From where to where the values of a [`Form::Plain`] go.
    pub bounds: Bounds,
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// A value of a parameter's kind.
    Plain(Kind),
    /// Another value.
    Value(&'static Takes),
    /// A section of its own.
    Section,
    /// Sections of the user's own names.
    Named,
}

/// What holds when a key is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// An error.
    Required,
    /// This, as it would be written.
    Toml(&'static str),
    /// One of these by the file's schema, as it would be written; see [`SCHEMAS`].
    BySchema([&'static str; SCHEMAS.len()]),
    /// What this sentence says.
    Derived(&'static str),
}

macro_rules! keys {
    ($( $(#[doc = $sdoc:literal])+ $name:ident {
        $(
            $(#[doc = $doc:literal])+
            #[source($source:literal)]
            $(#[bounds($($edge:ident $at:expr),+ $(; $why:literal)?)])?
            $key:ident: $form:expr => $fallback:expr,
        )*
    } )+) => {$(
        $(#[doc = $sdoc])+
        pub(crate) const $name: &[Key] = &[$( Key {
            name: stringify!($key),
            form: $form,
            fallback: $fallback,
            doc: concat!($($doc),+),
            source: $source,
            bounds: Bounds::NONE $( $( .$edge($at) )+ $( .because($why) )? )?,
        }, )*];
    )+};
}

use Fallback::{BySchema, Derived, Required, Toml};
use Form::{Plain, Value};

const ENDS: Kind = Kind::Choice(crate::ends::Ends::NAMES);
const DIRECTIONS: Kind = Kind::Choice(&["forward", "reverse"]);

keys! {
    /// The top of a file.
    TOP {
        /// Version of the file format: 1 or 2, which have other defaults. A file without it has
        /// schema 1.
        #[source("cwnd: files from before there were two")]
        schema: Plain(Kind::Integer) => Toml("1"),
        /// Short name, used for the output directory.
        #[source("cwnd: what the file is called says what it is")]
        name: Plain(Kind::Text) => Derived("the file's name without `.toml`"),
        /// What question the scenario answers.
        #[source("none")]
        description: Plain(Kind::Text) => Toml("\"\""),
        /// When things happen.
        #[source("none")]
        run: Form::Section => Required,
        /// What has a row in the results, for runs with more connections than are wanted there.
        #[source("none")]
        record: Form::Section => Derived("everything has a row"),
        /// One bottleneck between two sides; the short form of a graph of two links.
        #[source("none")]
        dumbbell: Form::Section => Derived("none; either this or links"),
        /// Directed links, by name; their ends are the nodes.
        #[source("none")]
        link: Form::Named => Derived("none; either these or a dumbbell"),
        /// Where the nodes are drawn, by name.
        #[source("none")]
        node: Form::Named => Derived("none; drawings find places for nodes that have none"),
        /// Groups of flows that are alike, by name.
        #[source("none")]
        flow: Form::Named => Required,
        /// What is varied from run to run.
        #[source("none")]
        sweep: Form::Section => Derived("one run"),
    }

    /// `[dumbbell]`.
    DUMBBELL {
        /// Rate of the bottleneck, from left to right.
        #[source("none: the bottleneck is what a scenario is about")]
        rate: Value(takes::LINK_RATE) => Required,
        /// The file of a [trace](#rates) in place of `rate`, mahimahi's or of seconds and Mbit/s.
        #[source("mahimahi, mm-link")]
        trace: Value(takes::TRACE_FILE) => Derived("none; short for `rate = { trace = … }`"),
        /// One-way propagation delay of the bottleneck itself, the same in each direction.
        #[source("cwnd: all of the delay is at the hosts, so that each group has its own RTT")]
        delay: Plain(Kind::Duration) => Toml("\"0 ms\""),
        /// What waits before the bottleneck.
        #[source("cwnd: what a router does that was told nothing")]
        queue: Value(takes::QUEUE) => Toml("\"fifo\""),
        /// What writes into packets beside the queue: load factors, rates, marks of its own.
        #[source("cwnd: routers forward packets as they are")]
        meter: Value(takes::METER) => Toml("\"none\""),
        /// What tells the sources of packets that the queue marks or drops.
        #[source("RFC 6633 § 4: routers send no source quenches")]
        messenger: Value(takes::MESSENGER) => Toml("\"none\""),
        /// Packets that the device below the discipline takes in advance, besides the one it sends: the discipline neither
        /// counts nor delays them.
        #[source("cwnd: none, the line takes from the discipline; ns-3 has 1 and more, a network card many")]
        #[bounds(up_to Bounds::WORD)]
        device_queue: Plain(Kind::Integer) => Toml("0"),
        /// Rate of the way back.
        #[source("cwnd: a symmetric line")]
        reverse_rate: Value(takes::LINK_RATE) => Derived("as `rate`"),
        /// What waits before the way back.
        #[source("Linux: the usual device queue (txqueuelen) is 1000 packets")]
        reverse_queue: Value(takes::QUEUE) => Toml("{ kind = \"fifo\", limit = \"1000 packets\" }"),
        /// What writes into packets beside the queue of the way back.
        #[source("cwnd: routers forward packets as they are")]
        reverse_meter: Value(takes::METER) => Toml("\"none\""),
        /// What tells the sources of packets that the queue of the way back marks or drops.
        #[source("RFC 6633 § 4: routers send no source quenches")]
        reverse_messenger: Value(takes::MESSENGER) => Toml("\"none\""),
        /// Rate of each host's own interface.
        #[source("cwnd: the bottleneck is the only one")]
        edge_rate: Value(takes::OPTIONAL_RATE) => Toml("\"none\""),
        /// The round-trip time that sizes in BDP refer to.
        #[source("cwnd: the bandwidth-delay product of the longest path")]
        bdp_rtt: Plain(Kind::Duration) => Derived("the largest mean base RTT of the groups"),
    }

    /// `[link.NAME]`.
    LINK {
        /// Node that the link leaves.
        #[source("none")]
        from: Plain(Kind::Text) => Required,
        /// Node that the link enters.
        #[source("none")]
        to: Plain(Kind::Text) => Required,
        /// Its rate; `"none"` is a pure delay without a queue.
        #[source("none")]
        rate: Value(takes::LINK_RATE) => Required,
        /// The file of a [trace](#rates) in place of `rate`, mahimahi's or of seconds and Mbit/s.
        #[source("mahimahi, mm-link")]
        trace: Value(takes::TRACE_FILE) => Derived("none; short for `rate = { trace = … }`"),
        /// One-way propagation delay.
        #[source("cwnd: all of the delay is at the hosts")]
        delay: Plain(Kind::Duration) => Toml("\"0 ms\""),
        /// What waits before it.
        #[source("cwnd: what a router does that was told nothing")]
        queue: Value(takes::QUEUE) => Toml("\"fifo\""),
        /// What writes into packets beside the queue: load factors, rates, marks of its own.
        #[source("cwnd: routers forward packets as they are")]
        meter: Value(takes::METER) => Toml("\"none\""),
        /// What tells the sources of packets that the queue marks or drops.
        #[source("RFC 6633 § 4: routers send no source quenches")]
        messenger: Value(takes::MESSENGER) => Toml("\"none\""),
        /// Packets that the device below the discipline takes in advance, besides the one it sends: the discipline neither
        /// counts nor delays them.
        #[source("cwnd: none, the line takes from the discipline; ns-3 has 1 and more, a network card many")]
        #[bounds(up_to Bounds::WORD)]
        device_queue: Plain(Kind::Integer) => Toml("0"),
        /// Whether there is a second link back, called `NAME.reverse`, with the same settings.
        #[source("cwnd: links are directed")]
        duplex: Plain(Kind::Bool) => Toml("false"),
        /// The round-trip time that sizes in BDP refer to.
        #[source("cwnd: the bandwidth-delay product of the longest path")]
        bdp_rtt: Plain(Kind::Duration) => Derived("the largest mean base RTT of the groups through the link"),
    }

    /// A rate written as a table.
    RATE {
        /// The rate at the start.
        #[source("none")]
        initial: Plain(Kind::Rate) => Derived("required, unless there is a trace"),
        /// Later rates, in order of time: `[{ at = "10 s", rate = "5 Mbit/s" }]`.
        #[source("cwnd: a line that does not change")]
        steps: Value(takes::STEPS) => Toml("[]"),
        /// After how long `initial` and `steps` begin anew; all steps are earlier. Sizes in BDP
        /// then refer to the mean over this time.
        #[source("cwnd: rates that change once")]
        #[bounds(above Span(Duration::ZERO); "time would never pass, write \"none\" for steps that \
            are taken once")]
        period: Plain(Kind::OptionalDuration) => Toml("\"none\""),
        /// The file of a trace: mahimahi's, one millisecond a line, at each of which 1500 bytes
        /// pass; or seconds and Mbit/s on each line.
        #[source("mahimahi, mm-link")]
        trace: Value(takes::TRACE_FILE) => Derived("none"),
        /// The milliseconds of a mahimahi trace, here in the file; it repeats after the last.
        #[source("mahimahi, mm-link")]
        trace_ms: Value(takes::TRACE_TIMES) => Derived("none"),
    }

    /// `[flow.NAME]`, in a dumbbell and in a graph.
    FLOW {
        /// How many flows; of those that arrive, how many independent arrival processes.
        #[source("cwnd: one flow shows the mechanism")]
        #[bounds(from Count(1), up_to Count(MOST_FLOWS); "a group of no flows does nothing, more can't be simulated")]
        count: Plain(Kind::Integer) => Toml("1"),
        /// Implementation of TCP: picks the presets of endpoint and controller, unless they name
        /// others.
        #[source("cwnd: what most senders run; schema 1 has RFC 6675 and RFC 6298")]
        stack: Value(takes::STACK) => BySchema(["\"rfc6675\"", "\"linux\""]),
        /// Congestion controller: a kind, or a table with `kind`, `preset` and its parameters.
        #[source("RFC 5681: the standard's own controller")]
        controller: Value(takes::CONTROLLER) => Toml("\"newreno\""),
        /// The rest of TCP: the name of a preset, or a table with `preset` and parameters.
        #[source("cwnd: one name for both parts of a stack")]
        endpoint: Value(takes::ENDPOINT) => Derived("the preset of the `stack`"),
        /// When the first flow starts, drawn for each flow.
        #[source("cwnd: at once")]
        start: Plain(Kind::DurationDist) => Toml("\"0 s\""),
        /// Added to the start of flow i: i times this.
        #[source("cwnd: all together")]
        spacing: Plain(Kind::Duration) => Toml("\"0 s\""),
        /// When flows without an end of their own stop, bulk flows and datagrams, and from when on no more connections arrive; `"none"` is
        /// the end of the run.
        #[source("cwnd: never")]
        stop: Plain(Kind::OptionalDuration) => Toml("\"none\""),
        /// What the flows send: a kind, or a table with `kind` and its keys.
        #[source("cwnd: a long-lived flow is the worst case for a queue (ABE § IV-B)")]
        workload: Value(takes::WORKLOAD) => Toml("\"bulk\""),
        /// How the connections arrive while the run goes on: a kind, or a table with `kind` and its keys.
        #[source("cwnd: the flows are there from the beginning")]
        arrivals: Value(takes::ARRIVALS) => Toml("\"none\""),
        /// Who sends what is forged to each of the connections: a kind, or a table with `kind` and its keys.
        #[source("cwnd: nobody")]
        attacker: Value(takes::ATTACKER) => Toml("\"none\""),
    }

    /// `[flow.NAME]`, in a dumbbell only.
    FLOW_DUMBBELL {
        /// Base round-trip time of the whole path, drawn for each flow.
        #[source("none: the RTT is what a scenario is about")]
        rtt: Plain(Kind::DurationDist) => Required,
        /// Whether data goes from left to right or back.
        #[source("cwnd: through the bottleneck's queue")]
        direction: Plain(DIRECTIONS) => Toml("\"forward\""),
    }

    /// `[flow.NAME]`, in a graph only.
    FLOW_GRAPH {
        /// Node where the senders are, or a list of nodes.
        #[source("none")]
        from: Value(takes::NODES) => Derived("required, unless there are `pairs`"),
        /// Node where the receivers are, or a list of nodes.
        #[source("none")]
        to: Value(takes::NODES) => Derived("required, unless there are `pairs`"),
        /// The pairs of nodes between which the flows go, in place of `from` and `to`: a traffic matrix.
        #[source("none")]
        pairs: Value(takes::PAIRS) => Derived("each of `from` with each of `to`"),
        /// Each node of `to` has flows from so many of the other nodes in `from`, drawn from the run's `seed`, the same for all repeats; `count` is then one from each.
        #[source("none; Mondal & Kuzmanovic 2008, § 5.3: 5, for clients that download from each other")]
        #[bounds(from Count(1), up_to Bounds::WORD; "peers that are none send nothing")]
        peers: Plain(Kind::OptionalInteger) => Toml("\"none\""),
        /// How each flow comes to its ends, where there are several.
        #[source("cwnd: flows of many hosts know nothing of each other")]
        ends: Plain(ENDS) => Toml("\"random\""),
        /// Links that data crosses, in order; only between two nodes.
        #[source("cwnd: least delay, then fewest links, then the links that come first in the file")]
        route: Value(takes::ROUTE) => Derived("the shortest path"),
        /// Links that ACKs cross, in order; only between two nodes.
        #[source("cwnd: least delay, then fewest links, then the links that come first in the file")]
        reverse_route: Value(takes::ROUTE) => Derived("the shortest path back"),
        /// Round-trip propagation between the hosts and the graph, drawn for each flow.
        #[source("cwnd: the graph has all the delay")]
        edge_rtt: Plain(Kind::DurationDist) => Toml("\"0 ms\""),
        /// Rate of each host's own interface.
        #[source("cwnd: the links are the only bottlenecks")]
        edge_rate: Value(takes::OPTIONAL_RATE) => Toml("\"none\""),
    }

    /// A pair of nodes.
    PAIR {
        /// Node where the sender is.
        #[source("none")]
        from: Plain(Kind::Text) => Required,
        /// Node where the receiver is.
        #[source("none")]
        to: Plain(Kind::Text) => Required,
        /// The pair is drawn in proportion to this; of no unit.
        #[source("cwnd: all pairs have the same chance")]
        #[bounds(above Number(0.0); "a pair that is never drawn is no pair")]
        share: Plain(Kind::Number) => Toml("1.0"),
    }

    /// `[sweep]`.
    SWEEP {
        /// Runs of each combination, with seeds `seed`, `seed + 1`, …
        #[source("cwnd: one")]
        #[bounds(from Count(1), up_to Count(MOST_CELLS); "no repeats are no runs, more fit no plan")]
        repeat: Plain(Kind::Integer) => Toml("1"),
        /// Axes, by name; every combination of their values is run.
        #[source("none")]
        axis: Form::Named => Derived("none"),
    }

    /// `[sweep.axis.NAME]`.
    AXIS {
        /// Path of the key that is varied, such as `"flow.main.rtt"`, or `"flow.*.rtt"` for that of every group; a list of
        /// paths varies them together.
        #[source("none")]
        path: Value(takes::PATHS) => Required,
        /// Its values; with several paths, a list of values for each.
        #[source("none")]
        values: Value(takes::VALUES) => Required,
        /// What the values are called in results.
        #[source("cwnd: the value says it best")]
        labels: Value(takes::LABELS) => Derived("the values as they are written"),
        /// Which labels a label's gain is counted over where worlds are compared: `{ BMCC = ["Reno", "CUBIC"] }`. A
        /// label that is not named here is over the longest other one that it extends with "+", as in `"Reno+ABE"`.
        #[source("cwnd: most arms are a base with something besides")]
        over: Value(takes::OVER) => Derived("what labels say with \"+\""),
    }
}

/// Runs that fit a plan.
pub(crate) const MOST_CELLS: u64 = 1_000_000;
/// Flows that can be simulated at a time.
pub(crate) const MOST_FLOWS: u64 = 8_000_000;
/// The versions of the file format; the last is the newest.
pub(crate) const SCHEMAS: [u64; 2] = [1, 2];
