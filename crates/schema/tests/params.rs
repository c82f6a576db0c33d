//! Derived parameter sets: reading, writing, checking and nesting.

use cwnd_quantity::{Bytes, CountDist, Duration, DurationDist, Levels, SizeDist};
use cwnd_schema::{Choice, Field, Invalid, Param, Params, PresetOf, Presets, Schema, Value};

/// A mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Mode {
    /// One.
    #[name("one")]
    One,
    /// Two.
    #[name("two")]
    Two,
}

/// Parameters that several sets have.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Shared {
    /// Size of each.
    #[default(Bytes(10), "RFC 4")]
    #[bounds(from Bytes(1), up_to Bytes(100); "nobody takes it")]
    #[idle(!self.on, "without `on`")]
    pub size: Bytes,
    /// A switch.
    #[default(true, "RFC 5")]
    pub on: bool,
}

/// An example.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets, check = Self::takes_time)]
#[idle([size, mode], self.span == Duration(1), "with a span of 1 ns")]
pub struct Example {
    /// Duration of each.
    #[default(Duration::from_millis(5), "RFC 1")]
    pub span: Duration,
    /// Shared keys.
    #[flatten(Shared { size: Bytes(20), ..Shared::default() }, size = "RFC 6")]
    pub shared: Shared,
    /// Direction.
    #[default(Mode::One, "RFC 2")]
    pub mode: Mode,
    /// A part.
    #[default(None, "RFC 3")]
    #[bounds(above 0.0, below 1.0)]
    pub part: Option<f64>,
}

impl Presets for Example {
    const PRESETS: &'static [PresetOf<Self>] = &[PresetOf::new("quick", "Quick.", || Self {
        span: Duration::from_micros(1),
        ..Self::default()
    })];
}

impl Example {
    fn takes_time(&self) -> Result<(), Invalid> {
        if self.span == Duration::ZERO {
            return Err(Invalid { key: "span", message: "zero".to_owned() });
        }
        Ok(())
    }
}

/// A set without parameters.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Nothing {}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[test]
fn every_parameter_reads_back_what_it_writes() {
    let mut example = Example::default();
    for field in example.fields() {
        let value = example.get(field.name).unwrap();
        example.set(field.name, &value).unwrap();
    }
    assert_eq!(example, Example::default());
    example.set("mode", &text("two")).unwrap();
    assert_eq!(example.mode, Mode::Two);
    let unknown = example.set("mode", &text("three")).unwrap_err().0;
    assert!(unknown.contains("\"one\", \"two\""));
    assert!(example.set("span", &Value::Integer(3)).unwrap_err().0.contains("bare number 3"));
    example.set("span", &text("0 s")).unwrap();
    assert_eq!(example.check().unwrap_err().key, "span");
}

#[test]
fn a_preset_is_a_whole_value() {
    let mut example = Example::default();
    example.set("mode", &text("two")).unwrap();
    assert!(example.apply_preset("quick"));
    assert_eq!(example, Example { span: Duration(1_000), ..Example::default() });
    assert!(!example.apply_preset("slow"));
    let presets: Vec<_> = example.presets().iter().map(|p| (p.name, p.doc)).collect();
    assert_eq!(presets, [("quick", "Quick.")]);
}

#[test]
fn the_keys_of_a_shared_set_stand_among_the_others_with_their_own_sources() {
    let of = |fields: &[Field]| -> Vec<(&str, &str)> {
        fields.iter().map(|field| (field.name, field.source)).collect()
    };
    let expected = [
        ("span", "RFC 1"),
        ("size", "RFC 6"),
        ("on", "RFC 5"),
        ("mode", "RFC 2"),
        ("part", "RFC 3"),
    ];
    assert_eq!(of(Example::FIELDS), expected);
    assert_eq!(of(Shared::FIELDS), [("size", "RFC 4"), ("on", "RFC 5")]);
    let mut example = Example::default();
    assert_eq!(example.get("size"), Some(text("20 B")));
    example.set("size", &text("30 B")).unwrap();
    assert_eq!(example.shared.size, Bytes(30));
    assert!(!example.is_default("size") && example.is_default("on"));
    example.reset("size");
    assert_eq!(example, Example::default());
    assert!(example.get("shared").is_none());
}

#[test]
fn a_value_out_of_its_bounds_is_refused_when_it_is_set_and_when_all_is_checked() {
    let mut example = Example::default();
    let refused = example.set("part", &Value::Float(1.0)).unwrap_err().0;
    assert_eq!(refused, "1 is out of range: it must be above 0 and below 1");
    let refused = example.set("size", &text("101 B")).unwrap_err().0;
    assert_eq!(refused, "101 B is out of range: it must be from 1 B to 100 B; nobody takes it");
    assert_eq!(example, Example::default());
    example.set("part", &text("none")).unwrap();
    example.shared.size = Bytes(0);
    assert_eq!(example.check().unwrap_err().key, "size");
}

#[test]
fn a_key_without_effect_has_the_first_reason() {
    let mut example = Example { span: Duration(1), ..Example::default() };
    let idle = |example: &Example| -> Vec<(&str, &str)> {
        example.idle().iter().map(|idle| (idle.key, idle.why)).collect()
    };
    let by_span = "with a span of 1 ns";
    assert_eq!(idle(&example), [("size", by_span), ("mode", by_span)]);
    example.shared.on = false;
    assert_eq!(idle(&example), [("size", "without `on`"), ("mode", by_span)]);
}

#[test]
fn a_set_may_be_empty() {
    let mut nothing = Nothing {};
    assert!(nothing.fields().is_empty() && nothing.presets().is_empty());
    assert!(nothing.get("x").is_none() && nothing.set("x", &text("y")).is_err());
    assert!(nothing.idle().is_empty() && nothing.check().is_ok() && !nothing.apply_preset("x"));
}

#[test]
fn a_number_is_read_where_a_text_may_say_more() {
    type Parts = Option<Levels<f64>>;
    let parts = Parts::read(&Value::Float(0.5)).unwrap();
    assert_eq!(parts, Levels::of(&[0.5]));
    assert_eq!(parts.write(), Value::Float(0.5));
    let several = Parts::read(&text("0.8, 0.6,0.5")).unwrap();
    assert_eq!(several.write(), text("0.8, 0.6, 0.5"));
    assert_eq!(Parts::read(&text("none")).unwrap(), None);
    assert_eq!(Parts::write(&None), text("none"));
    assert!(Parts::read(&Value::Integer(1)).is_err() && Parts::read(&Value::Bool(true)).is_err());

    let count = CountDist::read(&Value::Integer(7)).unwrap();
    assert_eq!(count, CountDist::constant(7));
    assert_eq!(count.write(), Value::Integer(7));
    assert_eq!(CountDist::read(&text("2.5")).unwrap().write(), text("2.5"));
    assert!(CountDist::read(&Value::Integer(-1)).is_err());
    let why = DurationDist::read(&Value::Integer(3)).unwrap_err().0;
    assert!(why.contains("bare number 3"), "{why}");
    let why = SizeDist::read(&Value::Integer(3)).unwrap_err().0;
    assert!(why.contains("a size with its unit"), "{why}");
}

/// A set that lists its keys in another order than its fields.
#[derive(Clone, Debug, PartialEq, Schema)]
#[order(size after span)]
#[order(on to mode after part)]
pub struct Ordered {
    /// Shared keys.
    #[flatten(Shared::default())]
    pub shared: Shared,
    /// Direction.
    #[default(Mode::One, "RFC 2")]
    pub mode: Mode,
    /// Duration of each.
    #[default(Duration::from_millis(5), "RFC 1")]
    pub span: Duration,
    /// A part.
    #[default(None, "RFC 3")]
    pub part: Option<f64>,
    /// The last.
    #[default(1, "RFC 7")]
    pub last: u32,
}

#[test]
fn keys_are_listed_in_the_order_that_a_set_asks_for() {
    let names: Vec<&str> = Ordered::FIELDS.iter().map(|field| field.name).collect();
    assert_eq!(names, ["span", "size", "part", "on", "mode", "last"]);
    assert_eq!(Ordered::default().get("size"), Some(text("10 B")));
}
