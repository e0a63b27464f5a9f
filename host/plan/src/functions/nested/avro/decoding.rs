//! Values that were written with one schema, decoded by the hundred into one builder.
//!
//! Only where a row fails, those of its hundred are decoded one by one: what a row does to the decoder ends with it. Decoders
//! are kept for the next batch, one for each thread that decodes at once.
//!
//! A value is what the schema says; bytes behind it are not looked at, as in Spark: a writer whose schema has new fields at the
//! end is read all the same.

use super::super::lists::record;
use arrow::array::{ArrayRef, UInt32Array, new_null_array};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::{DataType, Field};
use arrow_avro::reader::{Decoder, ReaderBuilder};
use arrow_avro::schema::{AvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use datafusion::error::DataFusionError;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

/// How many rows share a builder.
const CHUNK: usize = 128;

/// How the values of one schema are decoded.
pub(super) struct Decoding {
    /// What the decoder wants to see before each value: a zero and the number that it knows the schema by. Nobody can guess it,
    /// so no bytes behind a value are taken for the beginning of another.
    header: [u8; 9],
    number: u64,
    written: AvroSchema,
    wanted: Option<AvroSchema>,
    /// Decoders that nobody uses now.
    idle: Mutex<Vec<Decoder>>,
}

impl Decoding {
    /// For values that were written with a schema, and are read with another one if there is one.
    ///
    /// # Errors
    /// When the one schema cannot be read as the other.
    pub(super) fn new(written: AvroSchema, wanted: Option<AvroSchema>) -> Result<Self> {
        let number = RandomState::new().build_hasher().finish();
        let mut header = [0; 9];
        header[1..].copy_from_slice(&number.to_be_bytes());
        let decoding = Self { header, number, written, wanted, idle: Mutex::default() };
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
        let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id64);
        let only = store.set(Fingerprint::Id64(self.number), self.written.clone())?;
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
            let mut alone = self.decoder(1)?;
            for piece in chunk {
                match self.values(&mut alone, std::slice::from_ref(piece)) {
                    Ok(value) => column.push(std::slice::from_ref(piece), value),
                    Err(error) => {
                        malformed(piece.1, error)?;
                        column.spoil(piece.0);
                        // What has failed is not used again.
                        alone = self.decoder(1)?;
                    }
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
                // A decoder with room for more rows fails at what stands behind a value; one for a single row stops there.
                Ok(_) if decoder.capacity() + 1 == before => {}
                Ok(_) => return exec_err!("the bytes end before the value does"),
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
    /// Rows whose bytes are malformed.
    spoiled: Vec<usize>,
}

impl Column {
    /// A column of so many rows, which are null until their value comes.
    pub(super) fn new(rows: usize) -> Self {
        Self { parts: Vec::new(), places: vec![None; rows], came: 0, in_order: true, spoiled: Vec::new() }
    }

    /// Says that the bytes of a row are malformed.
    pub(super) fn spoil(&mut self, row: usize) {
        self.spoiled.push(row);
    }

    fn push(&mut self, pieces: &[(usize, &[u8])], values: ArrayRef) {
        self.place(pieces.iter().map(|(row, _)| *row), values);
    }

    fn place(&mut self, rows: impl Iterator<Item = usize>, values: ArrayRef) {
        for row in rows {
            self.in_order &= row == self.came as usize;
            self.places[row] = Some(self.came);
            self.came += 1;
        }
        self.parts.push(values);
    }

    /// The column, in the type that the query was planned with. Rows with malformed bytes are null, and where the type is a
    /// struct, a struct of nulls (Spark's `AvroDataToCatalyst.nullResultRow`).
    ///
    /// # Errors
    /// When a part cannot become that.
    pub(super) fn finish(mut self, output: &DataType) -> Result<ArrayRef> {
        let rows = self.places.len();
        let spoiled = std::mem::take(&mut self.spoiled);
        if let (DataType::Struct(fields), false) = (output, spoiled.is_empty()) {
            let nulls = fields.iter().map(|field| new_null_array(field.data_type(), spoiled.len())).collect();
            let blank = record(fields, nulls, None, spoiled.len())?;
            self.place(spoiled.into_iter(), blank);
        }
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
