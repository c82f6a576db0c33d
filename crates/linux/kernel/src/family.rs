//! Controllers of this program, and the settings and counters of each family.

use std::fmt;

use clap::ValueEnum;

/// Number of setting words in an info map (bpf/info_map.h).
pub const SETTING_WORDS: usize = 20;
/// Number of counter words in an info map (bpf/info_map.h).
pub const COUNTER_WORDS: usize = 24;
/// Words of a family's `struct settings`; unused words are zero.
pub type Words = [u32; SETTING_WORDS];

/// A controller of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Controller {
    /// Reno with ABE.
    AbeReno,
    /// CUBIC with ABE.
    AbeCubic,
    /// Reno with adaptive backoff.
    AdaptiveReno,
    /// CUBIC with adaptive backoff.
    AdaptiveCubic,
    /// Delay-based AIMD.
    DelayAimd,
    /// Reno that also reduces its window for source quenches.
    BecnReno,
    /// CUBIC that also reduces its window for source quenches.
    BecnCubic,
    /// BMCC: window control by load factors that routers signal and receivers echo.
    Bmcc,
    /// Retransmission timeouts without backoff at first (TCP*(n)); works beside any controller.
    Tcpstar,
    /// Receiver that falsifies the timestamps it echoes; no controller either.
    CheatStamps,
    /// A user's, from an object file.
    #[value(skip)]
    Own,
}

/// Properties that several controllers share.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// Words of `struct settings`, in order.
    pub settings: &'static [Setting],
    /// Names in COUNTERS of the C, in order.
    pub counters: &'static [&'static str],
    /// Attachment points of its programs: tables, interfaces or groups.
    pub attachment: Attachment,
    /// Columns of `status`: title and counter.
    pub columns: &'static [(&'static str, &'static str)],
}

/// Attachment points of a controller's programs, besides its table of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// The table only.
    Table,
    /// The table and interfaces.
    TableAndInterfaces,
    /// The table and a control group.
    TableAndGroup,
    /// A control group only, without a table.
    Group,
    /// Interfaces only, without a table.
    Interfaces,
}

impl Attachment {
    /// Returns the options that are valid besides the settings.
    #[must_use]
    pub const fn options(self) -> &'static [&'static str] {
        match self {
            Self::Table => &["--request-ecn", "--any-user"],
            Self::TableAndInterfaces => &["--interface", "--request-ecn", "--any-user"],
            Self::TableAndGroup => {
                &["--cgroup", "--own-namespace", "--whole-host", "--request-ecn", "--any-user"]
            }
            Self::Group => &["--cgroup", "--own-namespace", "--whole-host"],
            Self::Interfaces => &["--interface"],
        }
    }

    /// `true` if there is a table of operations.
    #[must_use]
    pub const fn has_table(self) -> bool {
        matches!(self, Self::Table | Self::TableAndInterfaces | Self::TableAndGroup)
    }

    /// `true` if it needs an interface.
    #[must_use]
    pub const fn needs_interface(self) -> bool {
        matches!(self, Self::TableAndInterfaces | Self::Interfaces)
    }

    /// `true` if only options narrow down the connections that it affects.
    #[must_use]
    pub const fn needs_bounds(self) -> bool {
        matches!(self, Self::TableAndGroup | Self::Group)
    }
}

/// A word of `struct settings`.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of the setting, also of its option.
    pub name: &'static str,
    /// Type of its value.
    pub kind: Kind,
}

/// Type and unit of a setting's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Fraction above 0 and below 1, in billionths.
    Fraction,
    /// Fraction above 0 and up to 1, in billionths.
    FractionUpToOne,
    /// Index of one of these words.
    Choice(&'static [&'static str]),
    /// Time, given in ms, stored in µs.
    Milliseconds,
    /// Positive factor up to 4, in billionths.
    Factor,
    /// Integer within these bounds.
    Number(u32, u32),
    /// IPv4 address in network byte order.
    Address,
    /// Ticks per second of the kernel; no option sets it.
    Ticks,
    /// Half of a 64-bit namespace cookie; no option sets it directly.
    CookieHalf,
}

impl Kind {
    /// `true` if an option sets it.
    #[must_use]
    pub const fn has_option(self) -> bool {
        !matches!(self, Self::Ticks | Self::CookieHalf)
    }
}

const fn setting(name: &'static str, kind: Kind) -> Setting {
    Setting { name, kind }
}

const TICKS: Setting = setting("hz", Kind::Ticks);

/// Counters of a family: CAUSES of bpf/cause.h, and then its own.
macro_rules! with_causes {
    ($($own:literal),*) => {
        &[
            "ecn", "loss", "timeout", "local", "loss_after_ecn", "opened", "closed", "untold",
            $($own),*
        ]
    };
}

/// Values of `--mode`.
pub const MODES: [&str; 2] = ["avoidance", "always"];
/// Values of `--loss-after-ecn`.
pub const LOSS_AFTER_ECN: [&str; 2] = ["once", "deepen"];
/// Values of `--rest`.
pub const RESTS: [&str; 3] = ["marked", "never", "always"];
/// Values of `--rtt-from`.
pub const RTT_FROM: [&str; 3] = ["sack", "oldest", "timestamps"];

/// Family of bpf/abe.h.
static ABE: Family = Family {
    settings: &[
        setting("beta_ecn", Kind::Fraction),
        setting("mode", Kind::Choice(&MODES)),
        setting("loss_after_ecn", Kind::Choice(&LOSS_AFTER_ECN)),
        TICKS,
    ],
    counters: with_causes!["ecn_in_slow_start"],
    attachment: Attachment::Table,
    columns: &[
        ("ECN", "ecn"),
        ("loss", "loss"),
        ("after", "loss_after_ecn"),
        ("timeout", "timeout"),
        ("local", "local"),
        ("untold", "untold"),
    ],
};

/// Family of bpf/adaptive.h.
static ADAPTIVE: Family = Family {
    settings: &[
        setting("delta", Kind::FractionUpToOne),
        TICKS,
        setting("rtt_from", Kind::Choice(&RTT_FROM)),
    ],
    counters: with_causes!["adapted", "adapted_permille"],
    attachment: Attachment::Table,
    columns: &[
        ("adapted", "adapted"),
        ("ECN", "ecn"),
        ("loss", "loss"),
        ("timeout", "timeout"),
        ("local", "local"),
        ("untold", "untold"),
    ],
};

/// Family of bpf/delay_aimd.bpf.c.
static DELAY_AIMD: Family = Family {
    settings: &[
        setting("threshold", Kind::Milliseconds),
        setting("delta", Kind::FractionUpToOne),
        setting("least_window", Kind::Number(1, 1000)),
        setting("rtt_from", Kind::Choice(&RTT_FROM)),
    ],
    counters: with_causes!["delay", "delay_in_slow_start", "spared"],
    attachment: Attachment::Table,
    columns: &[
        ("delay", "delay"),
        ("spared", "spared"),
        ("ECN", "ecn"),
        ("loss", "loss"),
        ("timeout", "timeout"),
        ("local", "local"),
        ("untold", "untold"),
    ],
};

/// Family of bpf/becn.h.
static BECN: Family = Family {
    settings: &[
        setting("beta_quench", Kind::Fraction),
        setting("rest", Kind::Choice(&RESTS)),
        setting("guesses", Kind::Number(0, u32::MAX)),
        TICKS,
    ],
    counters: with_causes![
        "quench_marked",
        "quench_dropped",
        "quenches",
        "malformed",
        "stranger",
        "outside",
        "deaf",
        "spared"
    ],
    attachment: Attachment::TableAndInterfaces,
    columns: &[
        ("marked", "quench_marked"),
        ("dropped", "quench_dropped"),
        ("believed", "quenches"),
        ("no quench", "malformed"),
        ("stranger", "stranger"),
        ("outside", "outside"),
        ("deaf", "deaf"),
        ("ECN", "ecn"),
        ("loss", "loss"),
        ("timeout", "timeout"),
    ],
};

/// Setting for the local IPv4 address of the affected connections.
pub const ADDRESS: &str = "address";
/// Settings for the halves of a network namespace's cookie.
pub const NAMESPACE: [&str; 2] = ["namespace_low", "namespace_high"];

/// Values of `--rests`.
pub const PAUSES: [&str; 2] = ["both", "longer"];
/// Values of `--on-loss`.
pub const ON_LOSS: [&str; 3] = ["if-overload", "repair", "decrease"];
/// Values of `--echo`.
pub const ECHOES: [&str; 3] = ["load", "load-changed", "load-every"];
/// Values of `--paced` and `--multiplies-first`.
pub const NO_YES: [&str; 2] = ["false", "true"];

/// Family of bpf/bmcc.bpf.c.
static BMCC: Family = Family {
    settings: &[
        setting("interval", Kind::Milliseconds),
        setting("mi_step", Kind::Factor),
        setting("alpha", Kind::Factor),
        setting("beta_most", Kind::Fraction),
        setting("beta_least", Kind::Fraction),
        setting("least", Kind::Fraction),
        setting("high", Kind::Fraction),
        setting("most", Kind::Factor),
        setting("mi_rtt_most", Kind::Milliseconds),
        setting("multiplies_first", Kind::Choice(&NO_YES)),
        setting("rests", Kind::Choice(&PAUSES)),
        setting("on_loss", Kind::Choice(&ON_LOSS)),
        setting("paced", Kind::Choice(&NO_YES)),
        setting("echo", Kind::Choice(&ECHOES)),
        setting(ADDRESS, Kind::Address),
        // Set by `--own-namespace`.
        setting(NAMESPACE[0], Kind::CookieHalf),
        setting(NAMESPACE[1], Kind::CookieHalf),
    ],
    counters: with_causes![
        "load_acks_heard",
        "malformed",
        "outside",
        "load_acks_multiplied",
        "load_acks_added",
        "load_acks_rested",
        "load_acks_unguided",
        "load_decreases",
        "losses_only_repaired",
        "told",
        "moved",
        "marks",
        "options_written"
    ],
    attachment: Attachment::TableAndGroup,
    columns: &[
        ("heard", "load_acks_heard"),
        ("times", "load_acks_multiplied"),
        ("plus", "load_acks_added"),
        ("rested", "load_acks_rested"),
        ("unguided", "load_acks_unguided"),
        ("less", "load_decreases"),
        ("repaired", "losses_only_repaired"),
        ("timeout", "timeout"),
        ("told", "told"),
        ("moved", "moved"),
        ("CE", "marks"),
        ("written", "options_written"),
    ],
};

/// Family of bpf/tcpstar.bpf.c.
static TCPSTAR: Family = Family {
    settings: &[
        setting("backoff_after", Kind::Number(1, 255)),
        TICKS,
        setting("syn_backoff_after", Kind::Number(0, 255)),
        setting(ADDRESS, Kind::Address),
        // Set by `--own-namespace`.
        setting(NAMESPACE[0], Kind::CookieHalf),
        setting(NAMESPACE[1], Kind::CookieHalf),
    ],
    counters: &[
        "timeouts",
        "bounded",
        "bounded_above",
        "doubled",
        "taken_back",
        "refused",
        "opened",
        "closed",
    ],
    attachment: Attachment::Group,
    columns: &[
        ("timeouts", "timeouts"),
        ("bounded", "bounded"),
        ("to 1 s", "bounded_above"),
        ("doubled", "doubled"),
        ("back", "taken_back"),
        ("refused", "refused"),
    ],
};

/// Family of bpf/cheat_stamps.bpf.c.
static CHEAT_STAMPS: Family = Family {
    settings: &[setting("subtract", Kind::Number(1, 60_000)), setting(ADDRESS, Kind::Address)],
    counters: &["rewritten", "failed", "opened", "closed"],
    attachment: Attachment::Interfaces,
    columns: &[("rewritten", "rewritten"), ("failed", "failed")],
};

/// Family of users' controllers, whose programs count nothing for `status`.
static OWN: Family =
    Family { settings: &[], counters: &[], attachment: Attachment::Table, columns: &[] };

impl Controller {
    /// Returns all controllers of this program.
    #[must_use]
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// Returns the name of the controller, also its default name in the kernel.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AbeReno => "abe_reno",
            Self::AbeCubic => "abe_cubic",
            Self::AdaptiveReno => "adaptive_reno",
            Self::AdaptiveCubic => "adaptive_cubic",
            Self::DelayAimd => "delay_aimd",
            Self::BecnReno => "becn_reno",
            Self::BecnCubic => "becn_cubic",
            Self::Bmcc => "bmcc",
            Self::Tcpstar => "tcpstar",
            Self::CheatStamps => "cheat_stamps",
            Self::Own => "c",
        }
    }

    /// Returns the controller of that name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::all().iter().chain(&[Self::Own]).copied().find(|one| one.name() == name)
    }

    /// Returns the family of the controller.
    #[must_use]
    pub fn family(self) -> &'static Family {
        match self {
            Self::AbeReno | Self::AbeCubic => &ABE,
            Self::AdaptiveReno | Self::AdaptiveCubic => &ADAPTIVE,
            Self::DelayAimd => &DELAY_AIMD,
            Self::BecnReno | Self::BecnCubic => &BECN,
            Self::Bmcc => &BMCC,
            Self::Tcpstar => &TCPSTAR,
            Self::CheatStamps => &CHEAT_STAMPS,
            Self::Own => &OWN,
        }
    }

    /// Returns the default of a setting, as a user would write it.
    #[must_use]
    pub fn default_of(self, setting: &str) -> &'static str {
        match (self, setting) {
            // RFC 8511 § 3.
            (Self::AbeReno, "beta_ecn") => "0.8",
            // ABE § IV.
            (Self::AbeCubic, "beta_ecn") => "0.85",
            (_, "mode") => "avoidance",
            (_, "loss_after_ecn") => "once",
            // McCullagh 2008 § 2.3.2, § 4.2: e.g. 0.8.
            (_, "delta") => "0.8",
            // § 2.3.2.
            (_, "threshold") => "50",
            // § 3.4.5: for receivers that delay ACKs, as Linux does.
            (_, "least_window") => "2",
            // BECN § IV-B: one half.
            (_, "beta_quench") => "0.5",
            (_, "rest") => "marked",
            // The default of `quench_max_guesses` of the endpoint.
            (_, "guesses") => "10",
            // Mondal & Kuzmanovic 2008 § 3.1: TCP*(6) is TCP*(∞).
            (_, "backoff_after") => "6",
            // The sample that the kernel's own controllers get.
            (_, "rtt_from") => "sack",
            // McCullagh 2008 § 5.1.1.
            (_, "subtract") => "100",
            (_, "address") => "0.0.0.0",
            // Qazi, Andrew, Znati 2009 § II-C, § II-D; crates/cc has the sources of values that the
            // paper leaves open.
            (_, "interval") => "200",
            (_, "mi_step") => "0.35",
            (_, "alpha") => "1",
            (_, "beta_most") => "0.875",
            (_, "beta_least") => "0.65",
            (_, "least") => "0.15",
            (_, "high") => "0.75",
            (_, "most") => "1.2",
            (_, "mi_rtt_most") => "500",
            (_, "multiplies_first" | "paced") => "true",
            (_, "rests") => "both",
            (_, "on_loss") => "if-overload",
            (_, "echo") => "load",
            _ => "0",
        }
    }

    /// Returns the map that all loaded instances share: the original values of socket options that
    /// they changed. With a map each, an instance would take another's value for the original, and
    /// restore it at its end.
    #[must_use]
    pub const fn shared(self) -> Option<&'static str> {
        match self {
            Self::Tcpstar => Some("cwnd_had"),
            _ => None,
        }
    }

    /// Returns the object file that build.rs compiled from bpf/; nothing for a user's.
    #[must_use]
    pub const fn object(self) -> &'static [u8] {
        match self {
            Self::AbeReno => include_bytes!(concat!(env!("OUT_DIR"), "/abe_reno.bpf.o")),
            Self::AbeCubic => include_bytes!(concat!(env!("OUT_DIR"), "/abe_cubic.bpf.o")),
            Self::AdaptiveReno => include_bytes!(concat!(env!("OUT_DIR"), "/adaptive_reno.bpf.o")),
            Self::AdaptiveCubic => {
                include_bytes!(concat!(env!("OUT_DIR"), "/adaptive_cubic.bpf.o"))
            }
            Self::DelayAimd => include_bytes!(concat!(env!("OUT_DIR"), "/delay_aimd.bpf.o")),
            Self::BecnReno => include_bytes!(concat!(env!("OUT_DIR"), "/becn_reno.bpf.o")),
            Self::BecnCubic => include_bytes!(concat!(env!("OUT_DIR"), "/becn_cubic.bpf.o")),
            Self::Bmcc => include_bytes!(concat!(env!("OUT_DIR"), "/bmcc.bpf.o")),
            Self::Tcpstar => include_bytes!(concat!(env!("OUT_DIR"), "/tcpstar.bpf.o")),
            Self::CheatStamps => include_bytes!(concat!(env!("OUT_DIR"), "/cheat_stamps.bpf.o")),
            Self::Own => &[],
        }
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Own { "a controller in C" } else { self.name() })
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::btf::Btf;
    use libbpf_rs::btf::types::Struct;

    use super::*;

    #[test]
    fn a_family_has_the_settings_and_counters_of_its_c() {
        for controller in Controller::all() {
            let family = controller.family();
            let object = format!("{}/{controller}.bpf.o", env!("OUT_DIR"));
            let types = Btf::from_path(object).expect("it describes its types");
            let members = |name| types.type_by_name::<Struct<'_>>(name).expect("it has them");
            assert_eq!(members("settings").len(), family.settings.len(), "{controller}");
            let counters = members("counters");
            let names = counters.iter().filter_map(|counter| counter.name);
            assert!(names.eq(family.counters.iter().copied()), "{controller}");
        }
    }

    #[test]
    fn an_object_names_no_place_on_the_machine_that_made_it() {
        let places = ["/home/", "/root/", "/tmp/", env!("CARGO_MANIFEST_DIR")];
        for controller in Controller::all() {
            let text = String::from_utf8_lossy(controller.object());
            assert!(!places.iter().any(|place| text.contains(place)), "{controller}");
        }
    }

    #[test]
    fn an_info_map_has_room_for_every_family() {
        for controller in Controller::all() {
            let family = controller.family();
            assert!(family.settings.len() <= SETTING_WORDS, "{controller}");
            assert!(family.counters.len() <= COUNTER_WORDS, "{controller}");
            for (_, counter) in family.columns {
                assert!(family.counters.contains(counter), "{controller}: {counter}");
            }
            let counts = |counter| family.counters.contains(&counter);
            assert!(counts("opened") && counts("closed"), "{controller}");
            assert_eq!(Controller::of(controller.name()), Some(*controller));
        }
    }
}
