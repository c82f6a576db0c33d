//! Headers of a source file in C, which become part of its text.

use std::sync::Arc;

use cwnd_schema::file::Context;

/// Beginning of the reason why a file that does not exist can't be read.
pub const NOT_THERE: &str = "there is no ";
/// Beginning of the line above each header; its name and a quotation mark follow.
const MARK: &str = "// cwnd: file \"";
/// End of the names of headers: any other file may be secret.
const HEADER: &str = ".h";
/// Headers that cwnd provides, and the folder of others.
const PROVIDED: [&str; 2] = ["vmlinux.h", "errno.h"];
const PROVIDED_FOLDER: &str = "bpf/";

/// Returns the text of a file with the headers of its folder below it, each under a line with its
/// name. Compiling reports those that are missing, as it knows which are needed.
///
/// # Errors
/// If a header is there and can't be read.
pub(crate) fn with_headers(name: &str, text: &str, cx: &mut Context<'_>) -> Result<String, String> {
    let folder = name.rfind('/').map_or("", |slash| &name[..=slash]);
    let mut bundle = text.to_owned();
    // Headers by their path below the folder, behind the source file.
    let mut files = vec![(String::new(), Arc::new(text.to_owned()))];
    let mut place = 0;
    while let Some((file, text)) = files.get(place).cloned() {
        place += 1;
        for (header, is_quoted) in text.lines().filter_map(included) {
            let beside = is_quoted.then(|| within(&file, header)).flatten();
            for path in beside.into_iter().chain(within("", header)) {
                if files.iter().any(|(known, _)| *known == path) {
                    break;
                }
                let full = format!("{folder}{path}");
                match cx.content(&full, "source file", |text| Ok(text.to_owned())) {
                    Ok(text) => {
                        if !bundle.ends_with('\n') {
                            bundle.push('\n');
                        }
                        bundle.push_str(&format!("{MARK}{path}\"\n{text}"));
                        files.push((path, text));
                        break;
                    }
                    Err(why) if why.starts_with(NOT_THERE) => {}
                    Err(why) => return Err(format!("`{full}` can't be used: {why}")),
                }
            }
        }
    }
    Ok(bundle)
}

/// Returns the header that a line includes, and `true` if it may lie beside the including file.
fn included(line: &str) -> Option<(&str, bool)> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
    let rest = rest.trim_start();
    let is_quoted = rest.starts_with('"');
    let (name, _) = rest.strip_prefix(['<', '"'])?.split_once(if is_quoted { '"' } else { '>' })?;
    let is_provided = PROVIDED.contains(&name) || name.starts_with(PROVIDED_FOLDER);
    (name.ends_with(HEADER) && !is_provided).then_some((name, is_quoted))
}

/// Returns the path of a header beside a file; `None` outside of the source file's folder.
fn within(file: &str, header: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in header.split('/') {
        match part {
            "" => return None,
            "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
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
            "ctl/lib/c.h" => {
                Ok("#include \"d.h\"\n#include \"../a.h\"\n#include <e.h>\n".to_owned())
            }
            "ctl/lib/d.h" => Ok("D\n".to_owned()),
            "ctl/lib/e.h" => Ok("not found by <>".to_owned()),
            "ctl/bad.h" => Err("it is no UTF-8 text (byte 3)".to_owned()),
            "ctl/vmlinux.h" | "ctl/../c.h" | "/d.h" | "ctl/secret" => Ok("SECRET".to_owned()),
            other => Err(format!("there is no {other}")),
        };
        let mut cx = Context::new(&files, |value, _, _| Ok(Cow::Borrowed(value)));
        let text = "#include \"vmlinux.h\"\n #  include <a.h> // x\n#include \"../c.h\"\n\
                    #include \"/d.h\"\n#include \"secret\"\n#include \"missing.h\"\nint x;";
        let bundle = with_headers("ctl/my.bpf.c", text, &mut cx).unwrap();
        let expected =
            "// cwnd: file \"a.h\"\n#include \"b.h\"\n// cwnd: file \"b.h\"\n#include \"a.h\"";
        assert_eq!(bundle, format!("{text}\n{expected}"));
        assert_eq!(with_headers("plain.c", "int x;\n", &mut cx).unwrap(), "int x;\n");
        // One that includes others lies in a folder of its own.
        let bundle = with_headers("ctl/my.c", "#include \"lib/c.h\"\n", &mut cx).unwrap();
        let names: Vec<&str> = bundle.lines().filter_map(|line| line.strip_prefix(MARK)).collect();
        assert_eq!(names, ["lib/c.h\"", "lib/d.h\"", "a.h\"", "b.h\""]);
        let error = with_headers("ctl/my.c", "#include \"bad.h\"\n", &mut cx).unwrap_err();
        assert_eq!(error, "`ctl/bad.h` can't be used: it is no UTF-8 text (byte 3)");
    }
}
