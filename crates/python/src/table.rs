use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt32Array, UInt64Array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, Field, Schema};
use cwnd_tables::{Column, ColumnData, Optional};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Columns in Arrow's memory layout, shared without a copy through the Arrow PyCapsule interface.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Clone, Debug)]
pub struct Table {
    columns: Arc<Vec<(Field, ArrayRef)>>,
}

/// Name of a stream's capsule in the PyCapsule interface.
const STREAM: &CStr = c"arrow_array_stream";

impl Table {
    /// Converts the column vectors into Arrow buffers, without a copy except for labels of names.
    pub fn new(table: cwnd_tables::Table) -> Self {
        Self { columns: Arc::new(table.columns.into_iter().map(into_arrow).collect()) }
    }

    fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let fields: Vec<Field> = self.columns.iter().map(|(field, _)| field.clone()).collect();
        let arrays = self.columns.iter().map(|(_, array)| Arc::clone(array)).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
    }
}

#[pymethods]
impl Table {
    #[getter]
    fn num_rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, array)| array.len())
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.columns.iter().map(|(field, _)| field.name().clone()).collect()
    }

    /// Arrow PyCapsule interface. The requested schema is ignored, as the interface permits.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batch = self.batch().map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
        let schema = batch.schema();
        let reader = RecordBatchIterator::new([Ok(batch)], schema);
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }
}

fn into_arrow(column: Column) -> (Field, ArrayRef) {
    let array: ArrayRef = match column.data {
        ColumnData::U32(v) => Arc::new(UInt32Array::from(v)),
        ColumnData::U64(v) => Arc::new(UInt64Array::from(v)),
        ColumnData::F64(v) => Arc::new(Float64Array::from(v)),
        ColumnData::OptionalF64(v) => {
            let (values, nulls) = buffers(v);
            Arc::new(Float64Array::new(values, nulls))
        }
        ColumnData::OptionalU64(v) => {
            let (values, nulls) = buffers(v);
            Arc::new(UInt64Array::new(values, nulls))
        }
        ColumnData::Name { codes, labels } => {
            let codes = UInt32Array::from(codes.into_iter().map(|c| c.0).collect::<Vec<_>>());
            let labels = Arc::new(StringArray::from(labels));
            Arc::new(DictionaryArray::<UInt32Type>::new(codes, labels))
        }
    };
    (Field::new(column.name, array.data_type().clone(), true), array)
}

fn buffers<T: Copy + ArrowNativeType>(
    column: Optional<T>,
) -> (ScalarBuffer<T>, Option<NullBuffer>) {
    let rows = column.len();
    let (values, present) = column.into_parts();
    let present = BooleanBuffer::new(present.into(), 0, rows);
    (values.into(), Some(NullBuffer::new(present)))
}
