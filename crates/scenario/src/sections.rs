//! Every key of a scenario file that is not a parameter of an algorithm: what it takes, its default, and who says so.
//! The reader, the reference and the schema all come from these tables.

use crate::takes::{self, Takes};
use cwnd_schema::expanded::{joined, same};
use cwnd_schema::{Bounds, Kind, Quantity::Count};

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

impl Key {
    /// Entry of a list whose keys are not known yet.
    pub const NONE: Self = Self {
        name: "",
        form: Plain(Kind::Text),
        fallback: Required,
        doc: "",
        source: "",
        bounds: Bounds::NONE,
    };
}

/// The same keys, some with other docs and sources.
pub(crate) const fn described<const N: usize>(
    keys: &[Key],
    others: &[(&str, &'static str, &'static str)],
) -> [Key; N] {
    let mut all = joined(&[keys], Key::NONE);
    let mut other = 0;
    while other < others.len() {
        let (name, doc, source) = others[other];
        let mut i = 0;
        while i < N {
            if same(all[i].name, name) {
                (all[i].doc, all[i].source) = (doc, source);
            }
            i += 1;
        }
        other += 1;
    }
    all
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
}

/// Runs that fit a plan.
pub(crate) const MOST_CELLS: u64 = 1_000_000;
/// Flows that can be simulated at a time.
pub(crate) const MOST_FLOWS: u64 = 8_000_000;
/// The versions of the file format; the last is the newest.
pub(crate) const SCHEMAS: [u64; 2] = [1, 2];
