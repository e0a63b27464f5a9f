//! Values that were written with one schema, decoded by the hundred into one builder.
//!
//! Only where a row fails, those of its hundred are decoded one by one: what a row does to the decoder ends with it. Decoders
//! are kept for the next batch, one for each thread that decodes at once.

use arrow::array::{ArrayRef, UInt32Array, new_null_array};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::{DataType, Field};
use arrow_avro::reader::{Decoder, ReaderBuilder};
use arrow_avro::schema::{AvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use datafusion::error::DataFusionError;
use millstream_client::schema_registry::{HEADER, header};
use std::sync::{Arc, Mutex, PoisonError};

/// How many rows share a builder.
const CHUNK: usize = 128;

/// How the values of one schema are decoded.
pub(super) struct Decoding {
    /// What the decoder wants to see before each value.
    header: [u8; HEADER],
    id: u32,
    written: AvroSchema,
    wanted: Option<AvroSchema>,
    /// Decoders that nobody uses now.
    idle: Mutex<Vec<Decoder>>,
}

impl Decoding {
    /// For values that were written with a schema, which has this number, and are read with another one if there is one.
    ///
    /// # Errors
    /// When the one schema cannot be read as the other.
    pub(super) fn new(id: u32, written: AvroSchema, wanted: Option<AvroSchema>) -> Result<Self> {
        let decoding = Self { header: header(id), id, written, wanted, idle: Mutex::default() };
        let decoder = decoding.decoder(CHUNK)?;
        decoding.put_back(decoder);
        Ok(decoding)
    }

    /// The type that comes out of the decoder.
    ///
    /// # Errors
    /// When there is no decoder.
    pub(super) fn field(&self) -> Result<Arc<Field>> {
        Ok(Arc::clone(&self.decoder(1)?.schema().fields()[0]))
    }

    fn decoder(&self, rows: usize) -> Result<Decoder> {
        let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
        let only = store.set(Fingerprint::Id(self.id), self.written.clone())?;
        let mut builder =
            ReaderBuilder::new().with_batch_size(rows).with_writer_schema_store(store).with_active_fingerprint(only);
        if let Some(wanted) = &self.wanted {
            builder = builder.with_reader_schema(wanted.clone());
        }
        Ok(builder.build_decoder()?)
    }

    fn put_back(&self, decoder: Decoder) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(decoder);
    }

    /// Decodes payloads, each with its row. `malformed` is told what is wrong with one, and says whether to go on.
    ///
    /// # Errors
    /// Those of `malformed`.
    pub(super) fn decode(
        &self,
        pieces: &[(usize, &[u8])],
        column: &mut Column,
        mut malformed: impl FnMut(&[u8], DataFusionError) -> Result<()>,
    ) -> Result<()> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut decoder = idle.map_or_else(|| self.decoder(CHUNK), Ok)?;
        for chunk in pieces.chunks(CHUNK) {
            if let Ok(values) = self.values(&mut decoder, chunk) {
                column.push(chunk, values);
                continue;
            }
            for piece in chunk {
                // What has failed is not used again.
                let mut alone = self.decoder(1)?;
                match self.values(&mut alone, std::slice::from_ref(piece)) {
                    Ok(value) => column.push(std::slice::from_ref(piece), value),
                    Err(error) => malformed(piece.1, error)?,
                }
            }
            decoder = self.decoder(CHUNK)?;
        }
        self.put_back(decoder);
        Ok(())
    }

    /// The values of some payloads.
    fn values(&self, decoder: &mut Decoder, pieces: &[(usize, &[u8])]) -> Result<ArrayRef> {
        for (_, value) in pieces {
            decoder.decode(&self.header).map_err(|error| exec_datafusion_err!("{error}"))?;
            let before = decoder.capacity();
            match decoder.decode(value) {
                Ok(read) if read == value.len() && decoder.capacity() + 1 == before => {}
                Ok(_) => return exec_err!("the value ends before the bytes do, or after them"),
                Err(error) => return exec_err!("{error}"),
            }
        }
        match decoder.flush().map_err(|error| exec_datafusion_err!("{error}"))? {
            Some(batch) if batch.num_rows() == pieces.len() => Ok(ArrayRef::clone(batch.column(0))),
            _ => exec_err!("the decoder gave other rows than it was given"),
        }
    }
}

/// A column under construction, of values that come in any order.
pub(super) struct Column {
    parts: Vec<ArrayRef>,
    /// For each row the place of its value among those that came.
    places: Vec<Option<u32>>,
    came: u32,
    in_order: bool,
}

impl Column {
    /// A column of so many rows, which are null until their value comes.
    pub(super) fn new(rows: usize) -> Self {
        Self { parts: Vec::new(), places: vec![None; rows], came: 0, in_order: true }
    }

    fn push(&mut self, pieces: &[(usize, &[u8])], values: ArrayRef) {
        for (row, _) in pieces {
            self.in_order &= *row == self.came as usize;
            self.places[*row] = Some(self.came);
            self.came += 1;
        }
        self.parts.push(values);
    }

    /// The column, in the type that the query was planned with.
    ///
    /// # Errors
    /// When a part cannot become that.
    pub(super) fn finish(self, output: &DataType) -> Result<ArrayRef> {
        let rows = self.places.len();
        if self.parts.is_empty() {
            return Ok(new_null_array(output, rows));
        }
        let parts = self.parts.iter().map(|part| cast(part, output)).collect::<Result<Vec<_>, _>>()?;
        let values = concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
        if self.in_order && self.came as usize == rows {
            return Ok(values);
        }
        Ok(take(&values, &UInt32Array::from(self.places), None)?)
    }
}
