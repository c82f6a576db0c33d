//! How a controller may be called.

/// The room for a name, with the zero that ends it (`TCP_CA_NAME_MAX`).
pub const NAME_BYTES: usize = 16;
