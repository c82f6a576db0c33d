use syn::parse_quote;

use super::*;
use crate::testing::holds;

fn text_of(input: &DeriveInput) -> String {
    expand(input).expect("it is complete").to_string()
}

fn errors_of(input: &DeriveInput) -> Vec<String> {
    let error = expand(input).expect_err("it is wrong");
    error.into_iter().map(|e| e.to_string()).collect()
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
fn a_parameter_has_its_former_name() {
    let text = text_of(&parse_quote! {
        struct Params {
            /// Least pause.
            #[default(Duration(75), "RFC 1016")]
            #[was("squid_least")]
            squid_min_pause: Duration,
        }
    });
    holds(&text, &[quote!(was: Some("squid_least"))]);
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
                let mut found = Vec::new();
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
