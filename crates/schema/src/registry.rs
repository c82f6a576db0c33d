//! Macros: the registry of a part's kinds, and checked names of parameters.

/// Defines the registry of a kind of part: an enum over their parameters, which a scenario selects
/// by `kind = "…"`.
///
/// Each line names a variant and its module, which the macro declares. The module holds `ENTRY`,
/// its [`RegistryEntry`](crate::RegistryEntry), and `Params`. The first kind is the default.
/// `#[each(name)]` names a macro: `name!(self, params => …)` evaluates an expression for the
/// parameters of whichever kind it is. `loaded` starts the kinds whose code is the user's; they are
/// no part of `KINDS`. `installed` is the variant of all kinds that installed packages have, whose
/// `Params` are made from a [`Description`](crate::Description).
#[macro_export]
macro_rules! registry {
    (
        $(#[doc = $edoc:literal])*
        #[each($each:ident)]
        pub enum $name:ident {
            $( $variant:ident($module:ident), )+
            $( ; loaded $( $own:ident($own_module:ident), )+ )?
            $( ; installed $other:ident($other_module:ident), )?
        }
    ) => {
        $( pub mod $module; )+
        $($( pub mod $own_module; )+)?
        $( pub mod $other_module; )?

        $(#[doc = $edoc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name { $(
            #[doc = concat!("[`", stringify!($module), "`].")]
            $variant($module::Params),
        )+ $($(
            #[doc = concat!("[`", stringify!($own_module), "`].")]
            $own($own_module::Params),
        )+)? $(
            #[doc = concat!("[`", stringify!($other_module), "`].")]
            $other($other_module::Params),
        )? }

        /// Evaluates an expression for the parameters of the enum's variant.
        macro_rules! $each {
            ($self:expr, $params:pat => $value:expr) => {
                match $self {
                    $( $name::$variant($params) => $value, )+
                    $($( $name::$own($params) => $value, )+)?
                    $( $name::$other($params) => $value, )?
                }
            };
        }

        impl $name {
            /// Constructors of the defaults of each kind.
            const DEFAULTS: &'static [fn() -> Self] =
                &[
                    $( || Self::$variant($module::Params::default()), )+
                    $($( || Self::$own($own_module::Params::default()), )+)?
                ];
        }

        impl Default for $name {
            fn default() -> Self {
                Self::DEFAULTS[0]()
            }
        }

        impl $crate::ParamsChoice for $name {
            const KINDS: &'static [$crate::RegistryEntry] = &[$( $module::ENTRY, )+];
            const LOADED: &'static [$crate::RegistryEntry] =
                &[$($( $own_module::ENTRY, )+)?];
            fn of_kind(kind: &str) -> Option<Self> {
                let place = Self::all_kinds().position(|entry| entry.is(kind))?;
                Some(Self::DEFAULTS[place]())
            }
            fn kind(&self) -> &'static str {
                match self {
                    $( Self::$variant(_) => $module::ENTRY.name, )+
                    $($( Self::$own(_) => $own_module::ENTRY.name, )+)?
                    $( Self::$other(params) => params.description.entry.name, )?
                }
            }
            $(
                const HAS_INSTALLED: bool = true;
                fn of_installed(description: &'static $crate::Description) -> Option<Self> {
                    Some(Self::$other($other_module::Params::new(description)))
                }
                fn description(&self) -> Option<&'static $crate::Description> {
                    match self {
                        Self::$other(params) => Some(params.description),
                        _ => None,
                    }
                }
            )?
            fn params(&self) -> &dyn $crate::Params {
                $each!(self, params => params)
            }
            fn params_mut(&mut self) -> &mut dyn $crate::Params {
                $each!(self, params => params)
            }
        }
    };
}

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
