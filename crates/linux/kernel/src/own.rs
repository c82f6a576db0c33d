//! Controllers of users: a `tcp_congestion_ops` in an object file of eBPF. Nothing else of the file
//! is loaded, and the kernel's verifier checks its programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use libbpf_rs::btf::types::{DataSec, Enum, Int, IntEncoding, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, BtfKind, BtfType, HasSize as _};
use libbpf_rs::{AsRawLibbpf as _, MapType, ObjectBuilder, OpenObject, ProgramType, libbpf_sys};

use crate::error::Error;
use crate::name::NAME_BYTES;

/// A controller of a user.
#[derive(Clone, Debug)]
pub struct Own {
    /// Object file.
    bytes: Vec<u8>,
    /// Controller to load, by the name in its table; `None` for the only one.
    table: Option<String>,
    /// Values of variables, as `NAME=NUMBER`.
    variables: Vec<String>,
}

/// A `tcp_congestion_ops` of an object.
struct Table {
    /// Name of its variable, and of its map.
    variable: String,
    /// Name under which sockets select it.
    name: String,
    /// Offsets of its members, bytes.
    members: BTreeMap<String, usize>,
    /// `true` if it has the operations that the kernel requires.
    is_complete: bool,
}

/// A constant whose value may be set before an object is loaded.
struct Variable {
    section: String,
    at: usize,
    bits: u32,
    is_signed: bool,
}

/// Values of a table and its map that the loader sets.
#[derive(Clone, Copy, Debug)]
pub struct Fixed<'n> {
    /// Name under which sockets select it.
    pub name: &'n str,
    /// Flags besides those of the file.
    pub flags: u32,
    /// Flags of the map.
    pub map_flags: u32,
    /// Operation that the kernel does not have.
    pub unknown: Option<&'static str>,
}

impl Own {
    /// Reads an object file.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn read(file: &Path, table: Option<&str>, variables: &[String]) -> Result<Self, Error> {
        let bytes =
            fs::read(file).map_err(|error| Error::Own(format!("{}: {error}", file.display())))?;
        Ok(Self { bytes, table: table.map(str::to_owned), variables: variables.to_vec() })
    }

    /// Returns the variables that are set, as `NAME=NUMBER`.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Returns the name in the table.
    ///
    /// # Errors
    /// Fails if the file has no such controller.
    pub fn name(&self) -> Result<String, Error> {
        Ok(self.table(&self.open()?)?.name)
    }

    /// Opens the object with the table, and no other, filled in.
    ///
    /// # Errors
    /// Fails if the file has no such controller or variable, or programs of another kind.
    pub fn prepare(&self, fixed: Fixed<'_>) -> Result<OpenObject, Error> {
        let mut open = self.open()?;
        let table = self.table(&open)?;
        for text in &self.variables {
            set(&mut open, text)?;
        }
        let refused = |what: &str, error: &libbpf_rs::Error| Error::Refused {
            what: format!("{what} {}", table.name),
            why: error.to_string(),
        };
        for mut map in open.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
            if map.name() != table.variable.as_str() {
                map.set_autocreate(false).map_err(|e| refused("to leave out tables of", &e))?;
                continue;
            }
            map.set_map_flags(fixed.map_flags).map_err(|e| refused("the flags of", &e))?;
            if let Some(value) = map.initial_value_mut() {
                table.fill_in(value, fixed)?;
            }
        }
        Ok(open)
    }

    fn open(&self) -> Result<OpenObject, Error> {
        let open = ObjectBuilder::default()
            .open_memory(&self.bytes)
            .map_err(|error| Error::Own(format!("the file is no object of eBPF: {error}")))?;
        // Others would be loaded with root's rights as well.
        if let Some(other) = open.progs().find(|one| one.prog_type() != ProgramType::StructOps) {
            let (name, section) = (other.name().display(), other.section().display());
            return Err(Error::Own(format!(
                "the file has a program `{name}` in section `{section}`, which belongs to no \
                 controller"
            )));
        }
        Ok(open)
    }

    /// Returns the chosen table.
    fn table(&self, open: &OpenObject) -> Result<Table, Error> {
        let mut tables = tables(open)?;
        let chosen = match &self.table {
            Some(name) => tables.iter().position(|table| table.name == *name),
            None if tables.len() == 1 => Some(0),
            None => {
                let mut complete = (0..tables.len()).filter(|&place| tables[place].is_complete);
                complete.next().filter(|_| complete.next().is_none())
            }
        };
        if let Some(place) = chosen {
            return Ok(tables.swap_remove(place));
        }
        let names: Vec<&str> = tables.iter().map(|table| &*table.name).collect();
        let listed = names.join(", ");
        Err(Error::Own(match &self.table {
            _ if names.is_empty() => "the file has no `tcp_congestion_ops`".to_owned(),
            Some(name) => format!("the file has no controller `{name}`; it has {listed}"),
            None => format!("the file has several controllers; --table selects one of {listed}"),
        }))
    }
}

impl Table {
    fn fill_in(&self, value: &mut [u8], fixed: Fixed<'_>) -> Result<(), Error> {
        let range = |member: &str, bytes: usize| {
            let at = *self.members.get(member)?;
            Some(at..at + bytes)
        };
        let mut write = |member: &str, bytes: &[u8]| {
            if let Some(place) = range(member, bytes.len()).and_then(|at| value.get_mut(at)) {
                place.copy_from_slice(bytes);
            }
        };
        let mut name = [0; NAME_BYTES];
        name[..fixed.name.len()].copy_from_slice(fixed.name.as_bytes());
        write("name", &name);
        if let Some(unknown) = fixed.unknown {
            // libbpf leaves out members that are zero, and their programs.
            write(unknown, &[0; POINTER_BYTES]);
        }
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_ne_bytes);
        if let Some(flags) = range("flags", size_of::<u32>()).and_then(|at| value.get_mut(at)) {
            flags.copy_from_slice(&(number(flags) | fixed.flags).to_ne_bytes());
        }
        if self.is_complete {
            return Ok(());
        }
        Err(Error::Own(format!(
            "{} is no complete `tcp_congestion_ops`, with `ssthresh`, `undo_cwnd` and `cong_avoid` \
             or `cong_control`",
            self.name
        )))
    }
}

/// Returns the tables of an object.
#[expect(unsafe_code, reason = "libbpf-rs has no function for it")]
fn tables(open: &OpenObject) -> Result<Vec<Table>, Error> {
    let types = types(open)?;
    let mut found = Vec::new();
    for map in open.maps().filter(|map| map.map_type() == MapType::StructOps) {
        let variable = map.name().to_string_lossy().into_owned();
        // SAFETY: the map lives as long as its object, which the borrow holds.
        let id = unsafe { libbpf_sys::bpf_map__btf_value_type_id(map.as_libbpf_object().as_ptr()) };
        let layout: Option<Struct<'_>> = types.type_by_id(id.into());
        let layout = layout.filter(|layout| layout.name().is_some_and(|name| name == CONTROLLER));
        let (Some(layout), Some(value)) = (layout, map.initial_value()) else {
            return Err(Error::Own(format!("`{variable}` of the file is no `{CONTROLLER}`")));
        };
        let members: BTreeMap<String, usize> = layout
            .iter()
            .filter_map(|member| Some((text(member.name?), offset(member.attr)?)))
            .collect();
        let name = members.get("name").and_then(|&at| value.get(at..at + NAME_BYTES));
        let name = name.unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        let has = |member: &str| {
            let bytes = members.get(member).and_then(|&at| value.get(at..at + POINTER_BYTES));
            bytes.is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0))
        };
        let grows = has("cong_avoid") || has("cong_control");
        let is_complete = has("ssthresh") && has("undo_cwnd") && grows;
        found.push(Table { variable, name, members, is_complete });
    }
    Ok(found)
}

/// Sets a variable, given as `NAME=NUMBER`.
fn set(open: &mut OpenObject, text: &str) -> Result<(), Error> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let value = match value {
        "true" => Ok(1),
        "false" => Ok(0),
        number => number.parse::<i64>(),
    };
    let value =
        value.map_err(|_| Error::Own(format!("the file takes a whole number for `{name}`")))?;
    let found = variable(&types(open)?, name).ok_or_else(|| {
        Error::Own(format!("the file has no `const volatile` variable `{name}` of whole numbers"))
    })?;
    if !found.fits(value) {
        return Err(Error::Own(format!(
            "the file has a variable `{name}`, which {value} does not fit"
        )));
    }
    let bytes = &value.to_le_bytes()[..found.bits.div_ceil(8) as usize];
    for mut map in open.maps_mut() {
        if map.name().to_string_lossy().ends_with(&found.section)
            && let Some(section) = map.initial_value_mut()
            && let Some(place) = section.get_mut(found.at..found.at + bytes.len())
        {
            place.copy_from_slice(bytes);
        }
    }
    Ok(())
}

/// Returns the constant of a name, or the member of a constant structure.
fn variable(types: &Btf<'_>, name: &str) -> Option<Variable> {
    for section in types.type_by_kind::<DataSec<'_>>() {
        let section_name = section.name().map(text).unwrap_or_default();
        if !section_name.starts_with(CONSTANTS) {
            continue;
        }
        for info in section.iter() {
            let Some(var) = types.type_by_id::<Var<'_>>(info.ty) else { continue };
            let Some(declared) = var.next_type().filter(|ty| is_volatile(*ty)) else { continue };
            let (ty, at) = (declared.skip_mods_and_typedefs(), info.offset as usize);
            let found = match Struct::try_from(ty) {
                Ok(structure) => structure
                    .iter()
                    .find(|member| member.name.is_some_and(|member| member == name))
                    .and_then(|member| {
                        let ty = types.type_by_id::<BtfType<'_>>(member.ty)?;
                        Some((ty.skip_mods_and_typedefs(), at + offset(member.attr)?))
                    }),
                Err(ty) => var.name().is_some_and(|var| var == name).then_some((ty, at)),
            };
            if let Some((ty, at)) = found
                && let Some((bits, is_signed)) = number(ty)
            {
                return Some(Variable { section: section_name, at, bits, is_signed });
            }
        }
    }
    None
}

impl Variable {
    fn fits(&self, value: i64) -> bool {
        match (self.is_signed, self.bits) {
            (true, 64..) => true,
            (true, bits) => (-1 << (bits - 1)..1 << (bits - 1)).contains(&value),
            (false, 63..) => value >= 0,
            (false, bits) => (0..1 << bits).contains(&value),
        }
    }
}

/// Returns the bits of a whole number, and `true` if it has a sign.
fn number(ty: BtfType<'_>) -> Option<(u32, bool)> {
    if let Ok(int) = Int::try_from(ty) {
        return Some(match int.encoding {
            IntEncoding::Bool => (1, false),
            IntEncoding::Signed | IntEncoding::Char => (int.bits.into(), true),
            IntEncoding::None => (int.bits.into(), false),
        });
    }
    let values = Enum::try_from(ty).ok()?;
    Some((8 * u32::try_from(values.size()).ok()?, values.is_signed()))
}

/// `true` for a type that the compiler may not replace by its value.
fn is_volatile(ty: BtfType<'_>) -> bool {
    match ty.kind() {
        BtfKind::Volatile => true,
        BtfKind::Const => ty.next_type().is_some_and(is_volatile),
        _ => false,
    }
}

/// Returns the types of an object.
#[expect(unsafe_code, reason = "libbpf-rs has no function for it before an object is loaded")]
fn types<'o>(open: &OpenObject) -> Result<Btf<'o>, Error> {
    // SAFETY: each caller uses the types while it has the object, which owns them.
    let object = unsafe { &*open.as_libbpf_object().as_ptr() };
    let types = Btf::from_bpf_object(object).ok().flatten();
    types.ok_or_else(|| Error::Own("the file has no types: compile it with -g".to_owned()))
}

/// Returns the offset of a member that is no bit field, bytes.
const fn offset(attribute: MemberAttr) -> Option<usize> {
    match attribute {
        MemberAttr::Normal { offset } => Some(offset as usize / 8),
        MemberAttr::BitField { .. } => None,
    }
}

fn text(name: &std::ffi::OsStr) -> String {
    name.to_string_lossy().into_owned()
}

/// Type of a controller's table.
const CONTROLLER: &str = "tcp_congestion_ops";
/// Beginning of the names of sections with constants.
const CONSTANTS: &str = ".rodata";
/// Size of an operation in a table.
const POINTER_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: Fixed<'_> =
        Fixed { name: "mine", flags: 2, map_flags: 0, unknown: Some("cwnd_event_tx_start") };

    fn own(table: Option<&str>, variables: &[&str]) -> Own {
        let file = concat!(env!("OUT_DIR"), "/abe_reno.bpf.o");
        let variables: Vec<String> = variables.iter().map(|text| (*text).to_owned()).collect();
        Own::read(Path::new(file), table, &variables).unwrap()
    }

    #[test]
    fn the_name_is_that_of_the_table() {
        assert_eq!(own(None, &[]).name().unwrap(), "abe_reno");
        let error = own(Some("other"), &[]).name().unwrap_err().to_string();
        assert_eq!(error, "the file has no controller `other`; it has abe_reno");
    }

    #[test]
    fn table_and_variables_are_set_before_loading() {
        let open = own(None, &["hz=250", "beta_ecn=900000000"]).prepare(FIXED).unwrap();
        let value = |of: &dyn Fn(&libbpf_rs::OpenMap<'_>) -> bool| {
            let map = open.maps().find(|map| of(map)).unwrap();
            map.initial_value().unwrap().to_vec()
        };
        let table = value(&|map| map.map_type() == MapType::StructOps);
        assert_eq!(table[..20], *b"mine\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0");
        let settings = value(&|map| map.name().to_string_lossy().ends_with("rodata.settings"));
        assert_eq!(settings[..4], 900_000_000_u32.to_ne_bytes());
        assert_eq!(settings[12..16], 250_u32.to_ne_bytes());
    }

    #[test]
    fn what_is_no_variable_or_does_not_fit_is_a_sentence() {
        for (text, why) in [
            ("gain=2", "the file has no `const volatile` variable `gain` of whole numbers"),
            ("hz=0.5", "the file takes a whole number for `hz`"),
            ("hz", "the file takes a whole number for `hz`"),
            ("hz=-1", "the file has a variable `hz`, which -1 does not fit"),
            ("hz=4294967296", "the file has a variable `hz`, which 4294967296 does not fit"),
        ] {
            let error = own(None, &[text]).prepare(FIXED).unwrap_err().to_string();
            assert_eq!(error, why);
        }
    }
}
