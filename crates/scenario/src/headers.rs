//! Headers of a source file in C, which become part of its text.

use cwnd_schema::file::Context;

/// Beginning of the line above each header; its name and a quotation mark follow.
const MARK: &str = "// cwnd: file \"";
/// End of the names of headers: any other file may be secret.
const HEADER: &str = ".h";
/// Headers that cwnd provides, and the folder of others.
const PROVIDED: [&str; 2] = ["vmlinux.h", "errno.h"];
const PROVIDED_FOLDER: &str = "bpf/";

/// Returns the text of a file with the headers of its folder below it, each under a line with its
/// name. Compiling reports those that are missing, as it knows which are needed.
pub(crate) fn with_headers(name: &str, text: &str, cx: &mut Context<'_>) -> String {
    let folder = name.rfind('/').map_or("", |slash| &name[..=slash]);
    let mut found: Vec<String> = Vec::new();
    let mut bundle = text.to_owned();
    let mut seen = 0;
    while seen < bundle.len() {
        let names: Vec<String> = bundle[seen..].lines().filter_map(included).collect();
        seen = bundle.len();
        for header in names {
            if found.contains(&header) {
                continue;
            }
            let path = format!("{folder}{header}");
            if let Ok(text) = cx.content(&path, "source file", |text| Ok(text.to_owned())) {
                if !bundle.ends_with('\n') {
                    bundle.push('\n');
                }
                bundle.push_str(&format!("{MARK}{header}\"\n{text}"));
            }
            found.push(header);
        }
    }
    bundle
}

/// Returns the header of the folder that a line includes.
fn included(line: &str) -> Option<String> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
    let rest = rest.trim_start();
    let end = if rest.starts_with('<') { '>' } else { '"' };
    let (name, _) = rest.strip_prefix(['<', '"'])?.split_once(end)?;
    let is_inside = !name.starts_with('/') && name.split('/').all(|part| part != "..");
    let is_provided = PROVIDED.contains(&name) || name.starts_with(PROVIDED_FOLDER);
    (name.ends_with(HEADER) && is_inside && !is_provided).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    #[test]
    fn the_headers_of_the_folder_follow_once_each_and_nothing_else_does() {
        let files = |name: &str| match name {
            "ctl/a.h" => Ok("#include \"b.h\"\n".to_owned()),
            "ctl/b.h" => Ok("#include \"a.h\"".to_owned()),
            "ctl/vmlinux.h" | "ctl/../c.h" | "/d.h" | "ctl/secret" => Ok("SECRET".to_owned()),
            other => Err(format!("there is no {other}")),
        };
        let mut cx = Context::new(&files, |value, _, _| Ok(Cow::Borrowed(value)));
        let text = "#include \"vmlinux.h\"\n #  include <a.h> // x\n#include \"../c.h\"\n\
                    #include \"/d.h\"\n#include \"secret\"\n#include \"missing.h\"\nint x;";
        let bundle = with_headers("ctl/my.bpf.c", text, &mut cx);
        let expected =
            "// cwnd: file \"a.h\"\n#include \"b.h\"\n// cwnd: file \"b.h\"\n#include \"a.h\"";
        assert_eq!(bundle, format!("{text}\n{expected}"));
        assert_eq!(with_headers("plain.c", "int x;\n", &mut cx), "int x;\n");
    }
}
