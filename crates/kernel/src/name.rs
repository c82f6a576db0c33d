//! How a controller may be called.

use crate::error::Error;

/// The room for a name, with the zero that ends it (`TCP_CA_NAME_MAX`).
pub const NAME_BYTES: usize = 16;

/// Whether a controller can have that name.
///
/// # Errors
/// If not.
pub fn check(name: &str) -> Result<(), Error> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let fits = !name.is_empty() && name.len() < NAME_BYTES;
    // `.` and `..` would be no file names.
    let dots = name.bytes().all(|b| b == b'.');
    if fits && !dots && name.bytes().all(plain) {
        Ok(())
    } else {
        Err(Error::Name(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_the_kernel_and_a_file_system_take() {
        for name in ["abe_reno", "a", "abe-0.85", "fifteen_letters"] {
            assert!(check(name).is_ok(), "{name}");
        }
        for name in ["", "sixteen__letters", "a b", "a/b", "..", ".", "ä"] {
            assert!(check(name).is_err(), "{name}");
        }
    }
}
