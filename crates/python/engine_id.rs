//! Hash of source code that ignores comments, doc comments, layout and names of files.
//!
//! Two modules that exchange their contents keep the hash.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Hexadecimal digits of an identifier.
const DIGITS: usize = 12;

/// Identifies source files by their tokens, in any order of the files.
///
/// # Errors
///
/// Returns the number of a file that is not Rust, counted from 0.
pub fn identify<'a>(sources: impl IntoIterator<Item = &'a str>) -> Result<String, usize> {
    let mut hashes = Vec::new();
    for (number, source) in sources.into_iter().enumerate() {
        let mut hash = Fnv::new();
        let tokens: TokenStream = source.parse().map_err(|_| number)?;
        hash.add_tokens(tokens);
        hashes.push(hash.0);
    }
    hashes.sort_unstable();
    let mut all = Fnv::new();
    hashes.iter().for_each(|hash| all.add(&hash.to_le_bytes()));
    Ok(format!("{:032x}", all.0)[..DIGITS].to_owned())
}

/// 128-bit FNV-1a over parts; each part ends with its length, which separates it from the next.
struct Fnv(u128);

impl Fnv {
    const fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    fn add(&mut self, bytes: &[u8]) {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let length = (bytes.len() as u64).to_le_bytes();
        for &byte in bytes.iter().chain(&length) {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    }

    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                // A trailing comma is layout: rustfmt adds and removes it.
                TokenTree::Punct(ref p) if p.as_char() == ',' && tokens.peek().is_none() => {}
                TokenTree::Punct(ref p) if p.as_char() == '#' => {
                    // `//!` is `#![doc = …]`, `///` is `#[doc = …]`.
                    let inner = tokens
                        .next_if(|next| matches!(next, TokenTree::Punct(p) if p.as_char() == '!'));
                    if tokens.next_if(is_doc).is_none() {
                        self.add(b"#");
                        inner.iter().for_each(|_| self.add(b"!"));
                    }
                }
                TokenTree::Group(group) => {
                    let (open, close): (&[u8], &[u8]) = match group.delimiter() {
                        Delimiter::Parenthesis => (b"(", b")"),
                        Delimiter::Brace => (b"{", b"}"),
                        Delimiter::Bracket => (b"[", b"]"),
                        Delimiter::None => (b"", b""),
                    };
                    self.add(open);
                    self.add_tokens(group.stream());
                    self.add(close);
                }
                other => self.add(other.to_string().as_bytes()),
            }
        }
    }
}

/// `true` of the brackets of a `doc` attribute.
fn is_doc(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else { return false };
    let first = group.stream().into_iter().next();
    matches!(first, Some(TokenTree::Ident(name)) if name == "doc")
}
