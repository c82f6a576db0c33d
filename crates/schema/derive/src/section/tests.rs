use syn::parse_quote;

use super::*;
use crate::testing::holds;

#[test]
fn a_field_is_listed_read_settled_and_written_under_its_name() {
    let expanded = expand(&parse_quote! {
        #[section(check = possible, default)]
        struct Faults {
            /// Probability of a loss.
            #[default(0.5, "netem")]
            #[bounds(up_to 1.0; "it is a probability")]
            loss: f64,
            /// Steps.
            #[entry(takes::STEPS)]
            #[default([], "a route that stays")]
            steps: Steps,
            /// Period.
            #[default("0 ms", "once")]
            #[idle(self.steps.is_empty(), "without `steps`")]
            period: Duration,
        }
    });
    holds(
        &expanded.expect("it is complete").to_string(),
        &[
            quote!(::std::sync::LazyLock::new(::cwnd_schema::file::from_defaults)),
            quote! {
                ::cwnd_schema::file::Key {
                    name: "loss",
                    form: ::cwnd_schema::file::Form::Plain(
                        <f64 as ::cwnd_schema::Param>::VALUE_TYPE
                    ),
                    fallback: ::cwnd_schema::file::Fallback::Toml("0.5"),
                    doc: "Probability of a loss.",
                    source: "netem",
                    bounds: ::cwnd_schema::Bounds::NONE
                        .up_to(::cwnd_schema::Typed::<<f64 as ::cwnd_schema::Param>::Bound>(
                            1.0
                        ).quantity())
                        .because("it is a probability"),
                }
            },
            quote!(form: takes::STEPS),
            quote!(::cwnd_schema::file::Fallback::Toml("[]")),
            quote!(::cwnd_schema::file::Fallback::Toml("\"0 ms\"")),
            quote!(pub steps: Option<Steps>),
            quote! {
                let loss = section.plain::<f64>("loss", cx);
                let steps =
                    section.read("steps", cx, <Steps as ::cwnd_schema::file::ReadValue<_>>::read);
                let period = section.plain::<Duration>("period", cx);
                let partial = PartialFaults { loss, steps, period, };
                possible(&partial, section, cx);
            },
            quote! {
                && self.period != default
                    && section.has_no_effect("period", "without `steps`", cx)
                {
                    self.period = default;
                }
            },
            quote! {
                let value = &self.loss;
                { written.push(("loss", ::cwnd_schema::file::plain(value))); }
            },
        ],
    );
}

#[test]
fn a_section_of_input_is_not_written_and_has_no_default_unasked() {
    let expanded = expand(&parse_quote! {
        #[section(input)]
        struct Place {
            /// To the right.
            #[required("none")]
            x: f64,
            /// Noise.
            #[by_schema("none", "path", "Floyd & Jacobson 1991")]
            noise: Noise,
        }
    });
    let text = expanded.expect("it is complete").to_string();
    holds(
        &text,
        &[
            quote!(fallback: ::cwnd_schema::file::Fallback::Required),
            quote! {
                fallback: ::cwnd_schema::file::Fallback::BySchema(
                    &["\"none\"", "\"path\""]
                )
            },
        ],
    );
    assert!(!text.contains("Default") && !text.contains("Resolved"), "{text}");
}

#[test]
fn a_key_that_may_be_absent_is_read_where_it_stands() {
    let no_other = NO_OTHER;
    let expanded = expand(&parse_quote! {
        struct Line {
            /// Rate.
            #[required("none", unless trace)]
            rate: Option<Rate>,
            /// Trace.
            #[derived("none", "mahimahi")]
            trace: Option<String>,
            #[flatten(loss = ("Loss of the line.", "netem"))]
            faults: Faults,
        }
    });
    holds(
        &expanded.expect("it is complete").to_string(),
        &[
            quote! {
                if section.entry("rate").is_some() || section.entry("trace").is_none() {
                    section.plain::<Rate>("rate", cx).map(Some)
                } else {
                    Some(None)
                }
            },
            quote! {
                let trace = if section.entry("trace").is_some() {
                    section.plain::<String>("trace", cx).map(Some)
                } else {
                    Some(None)
                };
            },
            quote!(assert!(::cwnd_schema::file::index_of(keys, "trace") < keys.len(), #no_other)),
            quote!(faults: <Faults as ::cwnd_schema::file::SectionKeys>::complete(faults)?),
            quote!(&[("loss", "Loss of the line.", "netem")]),
        ],
    );
}

#[test]
fn all_errors_of_a_section_are_reported_together() {
    let error = expand(&parse_quote! {
        #[section(checks = possible)]
        struct Faults {
            #[default(1, "netem")]
            without_doc: u32,
            /// First.
            without_default: u32,
            /// Second.
            #[default(1, 2, "netem")]
            two_defaults: u32,
            /// Third.
            #[required("none")]
            #[idle(true, "ever")]
            idle: u32,
            /// Fourth.
            #[derived("as `idle`", "none")]
            always: u32,
        }
    });
    let messages: Vec<String> =
        error.expect_err("it is wrong").into_iter().map(|e| e.to_string()).collect();
    assert_eq!(
        messages,
        [
            "there are `default`, `input` and `check = PATH`",
            "needs a doc comment, which schema and reference show",
            ONE_OF,
            "one default: `#[default(TOML, \"SOURCE\")]`",
            "a key without effect takes its default, so it has one",
            "a key that may be absent is an `Option`",
        ]
    );
}

#[test]
fn a_section_with_a_required_key_has_no_default() {
    let error = expand(&parse_quote! {
        #[section(default)]
        struct Place {
            /// To the right.
            #[required("none")]
            x: f64,
        }
    });
    assert_eq!(error.expect_err("it is wrong").to_string(), NO_DEFAULT);
}
