use std::ffi::CStr;

use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder, ffi::FFI_ArrowArray};
use arrow_schema::{ArrowError, DataType, Field, ffi::FFI_ArrowSchema};
use cwnd_tables::{Column, ColumnData, Optional};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Columns in Arrow's memory layout, shared without a copy through the Arrow PyCapsule interface.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Clone, Debug)]
pub struct Table {
    names: Vec<&'static str>,
    /// A struct whose children are the columns.
    columns: ArrayData,
}

/// Names of the capsules in the PyCapsule interface.
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

impl Table {
    /// Converts the column vectors into Arrow buffers, without a copy except for names.
    ///
    /// # Errors
    /// `RuntimeError` if columns differ in length or a code has no label.
    pub fn new(table: cwnd_tables::Table) -> PyResult<Self> {
        let names = table.columns.iter().map(|column| column.name).collect();
        let columns = into_arrow(table.columns).map_err(to_python)?;
        Ok(Self { names, columns })
    }
}

#[pymethods]
impl Table {
    #[getter]
    fn num_rows(&self) -> usize {
        self.columns.len()
    }

    #[getter]
    fn column_names(&self) -> &[&'static str] {
        &self.names
    }

    /// Arrow PyCapsule interface. The requested schema is ignored, as the interface permits.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        let schema = FFI_ArrowSchema::try_from(self.columns.data_type()).map_err(to_python)?;
        let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
        let array = FFI_ArrowArray::new(&self.columns);
        Ok((schema, PyCapsule::new_with_value(py, array, ARRAY)?))
    }
}

fn to_python(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Converts columns into one struct array.
fn into_arrow(columns: Vec<Column>) -> Result<ArrayData, ArrowError> {
    let mut fields = Vec::with_capacity(columns.len());
    let mut children = Vec::with_capacity(columns.len());
    for column in columns {
        let array = match column.data {
            ColumnData::U32(v) => numbers(DataType::UInt32, v),
            ColumnData::U64(v) => numbers(DataType::UInt64, v),
            ColumnData::F64(v) => numbers(DataType::Float64, v),
            ColumnData::OptionalF64(v) => optional(DataType::Float64, v),
            ColumnData::OptionalU64(v) => optional(DataType::UInt64, v),
            ColumnData::Name { codes, labels } => {
                let key = Box::new(DataType::UInt32);
                let codes = codes.into_iter().map(|code| code.0).collect();
                numbers(DataType::Dictionary(key, Box::new(DataType::Utf8)), codes)
                    .add_child_data(strings(&labels)?)
            }
        };
        let array = array.build()?;
        fields.push(Field::new(column.name, array.data_type().clone(), true));
        children.push(array);
    }
    let rows = children.first().map_or(0, ArrayData::len);
    ArrayData::builder(DataType::Struct(fields.into())).len(rows).child_data(children).build()
}

fn numbers<T: ArrowNativeType>(kind: DataType, values: Vec<T>) -> ArrayDataBuilder {
    ArrayData::builder(kind).len(values.len()).add_buffer(Buffer::from_vec(values))
}

fn optional<T: Copy + ArrowNativeType>(kind: DataType, column: Optional<T>) -> ArrayDataBuilder {
    let rows = column.len();
    let (values, present) = column.into_parts();
    let present = BooleanBuffer::new(present.into(), 0, rows);
    numbers(kind, values).nulls(Some(NullBuffer::new(present)))
}

fn strings(labels: &[String]) -> Result<ArrayData, ArrowError> {
    let mut ends = vec![0_i32];
    ends.extend(labels.iter().scan(0, |end, label| {
        *end += label.len() as i32;
        Some(*end)
    }));
    let text = labels.concat().into_bytes();
    numbers(DataType::Utf8, ends).len(labels.len()).add_buffer(Buffer::from_vec(text)).build()
}
