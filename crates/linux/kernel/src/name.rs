//! Names that a controller may have, and those of options.

/// Size of a name in the kernel, including the terminating zero (`TCP_CA_NAME_MAX`).
pub const NAME_BYTES: usize = 16;

/// `true` if the name is valid for the kernel and as a file name.
#[must_use]
pub fn fits(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    // `.` and `..` are no names of files; this also excludes longer ones, and the empty name, which
    // passes `all`.
    let dots = name.bytes().all(|b| b == b'.');
    name.len() < NAME_BYTES && !dots && name.bytes().all(plain)
}

/// Returns the option of a setting.
#[must_use]
pub fn option(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_the_kernel_and_a_file_system_take() {
        for name in ["abe_reno", "a", "abe-0.85", "fifteen_letters"] {
            assert!(fits(name), "{name}");
        }
        for name in ["", "sixteen__letters", "a b", "a/b", "..", ".", "ä"] {
            assert!(!fits(name), "{name}");
        }
    }
}
