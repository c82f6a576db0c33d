//! Parts of JSON Schemas.

use serde_json::{Value as Json, json};

/// A definition of this name.
pub(crate) fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// One of several forms.
pub(crate) fn any_of(forms: &[Json]) -> Json {
    json!({ "anyOf": forms })
}

/// The text "none".
pub(crate) fn none() -> Json {
    json!({ "const": "none" })
}

/// A text.
pub(crate) fn text() -> Json {
    json!({ "type": "string" })
}

/// A list of one or more.
pub(crate) fn some(items: &Json) -> Json {
    json!({ "type": "array", "items": items, "minItems": 1 })
}

/// A list, which may be empty.
pub(crate) fn list(items: &Json) -> Json {
    json!({ "type": "array", "items": items })
}
