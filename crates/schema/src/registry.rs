//! Macro that defines the registry of a part's kinds.

/// Defines the registry of a kind of part: an enum over their parameters, which a scenario selects
/// by `kind = "…"`.
///
/// Each line names a variant and its module, which the macro declares. The module holds `ENTRY`,
/// its [`RegistryEntry`](crate::RegistryEntry), and `Params`. The first kind is the default.
/// `#[each(name)]` names a macro: `name!(self, params => …)` evaluates an expression for the
/// parameters of whichever kind it is.
#[macro_export]
macro_rules! registry {
    (
        $(#[doc = $edoc:literal])*
        #[each($each:ident)]
        pub enum $name:ident { $( $variant:ident($module:ident), )+ }
    ) => {
        $( pub mod $module; )+

        $(#[doc = $edoc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name { $(
            #[doc = concat!("[`", stringify!($module), "`].")]
            $variant($module::Params),
        )+ }

        /// Evaluates an expression for the parameters of the enum's variant.
        macro_rules! $each {
            ($self:expr, $params:pat => $value:expr) => {
                match $self { $( $name::$variant($params) => $value, )+ }
            };
        }

        impl $name {
            /// Constructors of the defaults of each kind.
            const DEFAULTS: &'static [fn() -> Self] =
                &[$( || Self::$variant($module::Params::default()), )+];
        }

        impl Default for $name {
            fn default() -> Self {
                Self::DEFAULTS[0]()
            }
        }

        impl $crate::ParamsChoice for $name {
            const KINDS: &'static [$crate::RegistryEntry] = &[$( $module::ENTRY, )+];
            fn of_kind(kind: &str) -> Option<Self> {
                let place = Self::KINDS.iter().position(|entry| entry.is(kind))?;
                Some(Self::DEFAULTS[place]())
            }
            fn kind(&self) -> &'static str {
                match self { $( Self::$variant(_) => $module::ENTRY.name, )+ }
            }
            fn params(&self) -> &dyn $crate::Params {
                $each!(self, params => params)
            }
            fn params_mut(&mut self) -> &mut dyn $crate::Params {
                $each!(self, params => params)
            }
        }
    };
}
