//! Tests of the expansions of parameters and sections.

use proc_macro2::TokenStream;

/// Asserts that expanded code contains each of these parts; trailing commas are ignored.
fn holds(expanded: &str, parts: &[TokenStream]) {
    let expanded = without_trailing_commas(expanded);
    for part in parts {
        let part = without_trailing_commas(&part.to_string());
        let part = part.trim_end_matches(" ,");
        assert!(expanded.contains(part), "`{part}` is not in `{expanded}`");
    }
}

fn without_trailing_commas(code: &str) -> String {
    code.replace(" ,)", ")").replace(" , }", " }").replace(" ,]", "]").replace(" , ]", "]")
}

mod params {
    use quote::quote;
    use syn::{DeriveInput, parse_quote};

    use super::holds;
    use crate::params::{ONE_OF, expand};

    fn text_of(input: &DeriveInput) -> String {
        expand(input).expect("it is complete").to_string()
    }

    fn errors_of(input: &DeriveInput) -> Vec<String> {
        let error = expand(input).expect_err("it is wrong");
        error.into_iter().map(|e| e.to_string()).collect()
    }

    #[test]
    fn other_keys_are_arguments_of_loaded_code() {
        let text = text_of(&parse_quote! {
            struct Params {
                /// Class.
                #[required("none")]
                class: String,
                #[loaded]
                code: Loaded<dyn Maker>,
            }
        });
        holds(
            &text,
            &[
                quote!(Self {
                    class: ::core::default::Default::default(),
                    code: ::core::default::Default::default()
                }),
                quote! {
                    _ => {
                        self.code.arguments.insert(name.into(), value.clone());
                        Ok(())
                    }
                },
                quote!(Some(&self.code.arguments)),
            ],
        );
    }

    #[test]
    fn a_key_has_its_doc_default_source_and_bounds() {
        let text = text_of(&parse_quote! {
            struct Params {
                /// Delay to aim at,
                /// in the long run.
                #[default(Duration(5), "RFC 8289 § 4.4")]
                #[bounds(above Duration::ZERO, up_to Duration(9); "it marks everything")]
                target: Duration,
            }
        });
        holds(
            &text,
            &[
                quote!(Self { target: Duration(5) }),
                quote! {
                    name: "target",
                    value_type: <Duration as ::cwnd_schema::Param>::VALUE_TYPE,
                    doc: "Delay to aim at, in the long run.",
                    source: "RFC 8289 § 4.4",
                    bounds: <Duration as ::cwnd_schema::Param>::BOUNDS
                        .above(::cwnd_schema::Typed::<<Duration as ::cwnd_schema::Param>::Bound>(
                            Duration::ZERO
                        ).quantity())
                        .up_to(::cwnd_schema::Typed::<<Duration as ::cwnd_schema::Param>::Bound>(
                            Duration(9)
                        ).quantity())
                        .because("it marks everything"),
                    required: false,
                    part: None,
                    was: None,
                    later: false,
                },
                quote!("target" => Some(::cwnd_schema::Param::write(&self.target))),
            ],
        );
    }

    #[test]
    fn a_parameter_that_a_part_sets_names_it() {
        let text = text_of(&parse_quote! {
            struct Params {
                /// Probes.
                #[default(false, "RFC 8985")]
                #[part("tlp")]
                probes: bool,
            }
        });
        holds(&text, &[quote!(part: Some("tlp"))]);
    }

    #[test]
    fn a_parameter_has_its_former_name_and_may_be_later_than_results() {
        let text = text_of(&parse_quote! {
            struct Params {
                /// Least pause.
                #[default(Duration(75), "RFC 1016")]
                #[was("squid_least")]
                #[later]
                squid_min_pause: Duration,
            }
        });
        holds(&text, &[quote!(was: Some("squid_least")), quote!(later: true)]);
    }

    #[test]
    fn a_required_key_has_no_default() {
        let text = text_of(&parse_quote! {
            struct Params {
                /// Size.
                #[required("none")]
                size: Bytes,
            }
        });
        holds(&text, &[quote!(size: ::core::default::Default::default()), quote!(required: true)]);
    }

    #[test]
    fn the_keys_of_a_flattened_set_stand_among_the_others() {
        let text = text_of(&parse_quote! {
            struct Params {
                #[flatten(rfc(), beta = "RFC 9438 § 4.6")]
                rule: Rule,
                #[flatten(Growing::default())]
                growing: Growing,
            }
        });
        holds(
            &text,
            &[
                quote!(Self { rule: rfc(), growing: Growing::default() }),
                quote! {
                    &::cwnd_schema::derive_support::with_sources::<{ <Rule>::FIELDS.len() }>(
                        <Rule>::FIELDS,
                        &[("beta", "RFC 9438 § 4.6")],
                    ),
                    <Growing>::FIELDS,
                },
                quote!(::cwnd_schema::Params::check(&self.rule)?;),
                // A source for a key that the nested set lacks is an error at the key's name.
                quote! {
                    const _: () = assert!(
                        ::cwnd_schema::derive_support::has(<Rule>::FIELDS, "beta"),
                        "there is no parameter `beta`"
                    );
                },
            ],
        );
    }

    #[test]
    fn rules_of_fields_come_before_those_of_the_struct() {
        let text = text_of(&parse_quote! {
            #[schema(presets, check = Self::consistent)]
            #[idle([gentle, beta], self.is_step(), "with a step")]
            struct Params {
                #[flatten(Rule::default())]
                rule: Rule,
                /// Gentle.
                #[default(true, "Floyd 2000")]
                #[idle(!self.on, "without `on`")]
                gentle: bool,
            }
        });
        holds(
            &text,
            &[
                quote! {
                    let mut found = ::cwnd_schema::derive_support::Vec::new();
                    found.extend(::cwnd_schema::Params::idle(&self.rule));
                    if !self.on {
                        found.extend(
                            ["gentle"].map(|key| ::cwnd_schema::Idle { key, why: "without `on`" })
                        );
                    }
                    if self.is_step() {
                        found.extend(
                            ["gentle", "beta"]
                                .map(|key| ::cwnd_schema::Idle { key, why: "with a step" })
                        );
                    }
                },
                quote!(Self::consistent(self)),
                quote!(::cwnd_schema::derive_support::apply_preset(self, name)),
                quote!(::cwnd_schema::derive_support::has(<Params>::FIELDS, "beta")),
            ],
        );
    }

    #[test]
    fn all_errors_of_a_struct_are_reported_together() {
        let errors = errors_of(&parse_quote! {
            #[schema(preset)]
            #[idle(first, true, "never")]
            struct Params {
                #[default(1, "RFC 1")]
                without_doc: u32,
                /// First.
                without_default: u32,
                /// Second.
                #[default(1)]
                without_source: u32,
                /// Third.
                #[default(1, "RFC 1")]
                #[required("RFC 1")]
                with_two: u32,
                /// Fourth.
                #[default(1, "RFC 1")]
                #[bounds(within 1)]
                with_odd_bounds: u32,
                /// Fifth.
                #[default(1, " ")]
                with_empty_source: u32,
                #[flatten(Rule::default())]
                #[idle(true, "always")]
                with_rule: Rule,
            }
        });
        assert_eq!(
            errors,
            [
                "there are `presets` and `check = PATH`",
                "needs a doc comment, which schema and reference show",
                ONE_OF,
                "a default has a source: `(VALUE, \"SOURCE\")`",
                ONE_OF,
                "a bound is `from`, `above`, `up_to` or `below` a value",
                "the text is empty",
                "a rule about keys of a set is of the struct: `#[idle([KEY], CONDITION, \"WHY\")]`",
                "expected square brackets",
            ]
        );
        assert_eq!(
            errors_of(&parse_quote!(
                struct Params(u32);
            )),
            ["parameters have names"]
        );
        assert_eq!(
            errors_of(&parse_quote!(
                enum Params {}
            )),
            ["parameters are a struct"]
        );
    }

    #[test]
    fn an_order_names_a_key_or_two_and_another_one() {
        let of = |order: syn::Attribute| {
            let set: DeriveInput = parse_quote! {
                #order
                struct Params {
                    #[flatten(Rule::default())]
                    rule: Rule,
                }
            };
            set
        };
        let text = text_of(&of(parse_quote!(#[order(a to b after c)])));
        holds(&text, &[quote!(["a", "b"], "c"), quote!("there is no parameter `c`")]);
        holds(&text_of(&of(parse_quote!(#[order(a after c)]))), &[quote!(["a", "a"], "c")]);
        let wrong = of(parse_quote!(#[order(a before c)]));
        assert_eq!(errors_of(&wrong), ["there are `to KEY` and `after KEY`"]);
    }
}

mod section {
    use quote::quote;
    use syn::parse_quote;

    use super::holds;
    use crate::section::{NO_DEFAULT, NO_OTHER, ONE_OF, expand};

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
                    let steps = section.read(
                        "steps", cx, <Steps as ::cwnd_schema::file::ReadValue<_>>::read
                    );
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
                quote!(
                    assert!(::cwnd_schema::file::index_of(keys, "trace") < keys.len(), #no_other)
                ),
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
}
