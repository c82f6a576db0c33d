//! Sections whose keys are the fields of a struct.

use cwnd_schema::Param;

use crate::reader::{At, Context, Section};
use crate::sections::Key;
use crate::takes::Takes;
use crate::toml_text::toml;

/// Keys of a section, which `#[derive(SectionKeys)]` makes of fields.
pub(crate) trait SectionKeys: Sized {
    /// Keys, in order.
    const KEYS: &'static [Key];
    /// Reads all keys, and reports all errors.
    fn read(section: &Section<'_>, cx: &mut Context<'_>) -> Option<Self>;
    /// Notes keys without effect, which take their defaults.
    fn settle(&mut self, _: &Section<'_>, _: &mut Context<'_>) {}
    /// Keys and values as TOML, in order.
    fn written(&self) -> Vec<(&'static str, String)>;
}

/// A value that is no [`Param`]: it reads its node itself.
pub(crate) trait Entry: Sized {
    /// Description of the value.
    const TAKES: &'static Takes;
    /// Reads it, and reports what is wrong.
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self>;
    /// Writes it as TOML.
    fn write(&self) -> String;
}

/// A parameter's value as TOML.
pub(crate) fn plain<T: Param>(value: &T) -> String {
    toml(&value.write())
}

/// All keys of a section as a table on one line.
pub(crate) fn inline<S: SectionKeys>(section: &S) -> String {
    let keys = section.written().into_iter().map(|(name, value)| format!("{name} = {value}"));
    format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::SectionKeys;
    use crate::diagnostics::Span;
    use crate::impairments::{Impairments, Tampering};
    use crate::model::Record;
    use crate::reader::{Context, Section};
    use crate::tree::parse_value;

    /// Reads an empty section.
    fn empty<S: SectionKeys>(keys: &'static [&'static [crate::sections::Key]]) -> S {
        let mut cx = Context::new(&|name| Err(format!("no file `{name}`")));
        let node = parse_value(0, 0, "{}", &mut cx.sink).expect("TOML");
        let table = node.table().expect("a table");
        let section = Section::new(table, keys, "", Span::default(), &mut cx);
        S::read(&section, &mut cx).expect("no key is required")
    }

    #[test]
    fn the_default_that_pages_show_is_the_default() {
        assert_eq!(empty::<Impairments>(&[Impairments::KEYS]), Impairments::default());
        assert_eq!(empty::<Tampering>(&[Tampering::KEYS]), Tampering::default());
        assert_eq!(empty::<Record>(&[Record::KEYS]), Record::default());
    }
}
