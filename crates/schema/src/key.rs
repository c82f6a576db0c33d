//! Checked names of parameters.

/// Expands to the name of a parameter, given its field. A field that does not exist is a compile
/// error.
///
/// ```
/// # use cwnd_schema::{Schema, key};
/// # /// A rule.
/// # #[derive(Schema)]
/// # pub struct Rule {
/// #     /// Part that stays.
/// #     #[default(0.5, "RFC 5681")]
/// #     pub beta: f64,
/// # }
/// # /// A controller.
/// # #[derive(Schema)]
/// # pub struct Params {
/// #     #[flatten(Rule::default())]
/// #     pub rule: Rule,
/// # }
/// assert_eq!(key!(Params: rule.beta), "beta");
/// ```
/// ```compile_fail
/// # use cwnd_schema::{Schema, key};
/// # /// A rule.
/// # #[derive(Schema)]
/// # pub struct Rule {}
/// key!(Rule: beta);
/// ```
#[macro_export]
macro_rules! key {
    (@last $last:ident) => { stringify!($last) };
    (@last $first:ident . $($rest:ident).+) => { $crate::key!(@last $($rest).+) };
    ($set:ty: $($field:ident).+) => {{
        let _ = |set: &$set| {
            let _ = &set.$($field).+;
        };
        $crate::key!(@last $($field).+)
    }};
}
