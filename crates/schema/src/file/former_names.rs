//! Former names of parameters, which files may use for one version.

use std::borrow::Cow;

use crate::Params;
use crate::file::context::Context;
use crate::file::tree::Table;

/// Returns a table of parameters with the current names of its keys, and warns of former ones; a
/// key under both names is an error. `path` is the path of the table.
pub fn with_current_names<'t>(
    params: &dyn Params,
    table: &'t Table,
    path: &str,
    cx: &mut Context<'_>,
) -> Cow<'t, Table> {
    let mut table = Cow::Borrowed(table);
    for field in params.fields() {
        let Some(was) = field.was else { continue };
        let Some(i) = table.entries.iter().position(|entry| entry.key == was) else { continue };
        let (name, is_given) = (field.name, table.get(field.name).is_some());
        let (span, path) = (table.entries[i].position(), format!("{path}.{was}"));
        if is_given {
            let message = format!("`{was}` is the former name of `{name}`, which is given as well");
            cx.sink.error(span, path, message).help(format!("remove `{was}`"));
            table.to_mut().entries.remove(i);
        } else {
            let message = format!("`{was}` is now called `{name}`");
            let problem = cx.sink.warning(span, path, message);
            problem.help(format!("write `{name}`: the next version does not know the old name"));
            name.clone_into(&mut table.to_mut().entries[i].key);
        }
    }
    table
}
