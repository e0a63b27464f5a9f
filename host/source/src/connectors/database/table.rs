//! A table or a query of a database as rows that are read whole.
//!
//! As a static table it is read when a query starts. Its offset counts the readings, so it has one batch.

use super::options::{From, TableOptions};
use super::{Connect, failed};
use crate::connectors::attempt::patiently;
use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use millstream_client::database::{DatabaseError, Product};
use millstream_common::{ReadLimit, StopSignal};
use std::marker::PhantomData;
use std::sync::Arc;

/// A product whose tables can be read.
pub(crate) trait TableDialect: Send + Sync + 'static {
    /// Its connection.
    type Connection: Connect;
    /// Which it is.
    const PRODUCT: Product;

    /// The columns of a table or a query.
    fn columns(connection: &mut Self::Connection, from: &From) -> Result<SchemaRef, DatabaseError>;

    /// Reads rows of the projected columns, in one state of the database, and hands them over piece by piece.
    fn read(
        name: &str,
        connection: &mut Self::Connection,
        from: &str,
        projected: &SchemaRef,
        take: &mut dyn FnMut(RecordBatch) -> Result<(), SourceError>,
    ) -> Result<(), SourceError>;
}

/// Makes tables of one product.
pub(crate) struct TableFactory<D>(PhantomData<D>);

impl<D: TableDialect> TableFactory<D> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }

    /// The columns that are declared, or those that the server tells when it is asked once.
    fn columns(options: &TableOptions, spec: &SourceSpec, stop: &StopSignal) -> Result<SchemaRef, SourceError> {
        if let Some(declared) = &spec.schema {
            let fields = declared.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
            return Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())));
        }
        let ask = || {
            let mut connection = D::Connection::open(&options.address, "millstream table", stop)?;
            D::columns(&mut connection, &options.from)
        };
        ask().map_err(failed(&spec.name, "ask for the columns of the table"))
    }
}

impl<D: TableDialect> SourceFactory for TableFactory<D> {
    /// Asks the server, where no columns are declared.
    fn schema(&self, spec: &SourceSpec) -> Result<SchemaRef, SourceError> {
        Self::columns(&TableOptions::new(D::PRODUCT, spec)?, spec, &StopSignal::new())
    }

    fn open(&self, spec: &SourceSpec, context: SourceContext) -> Result<Box<dyn Source>, SourceError> {
        let options = TableOptions::new(D::PRODUCT, spec)?;
        // A server that is away for a moment does not keep a query from starting.
        let schema = patiently(&spec.name, &context.stop, || Self::columns(&options, spec, &context.stop))?;
        Ok(Box::new(TableSource::<D> {
            name: spec.name.clone(),
            options,
            schema,
            stop: context.stop,
            dialect: PhantomData,
        }))
    }
}

/// The rows of a table as they are when they are read.
struct TableSource<D> {
    name: String,
    options: TableOptions,
    schema: SchemaRef,
    stop: StopSignal,
    dialect: PhantomData<D>,
}

impl<D: TableDialect> Source for TableSource<D> {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn description(&self) -> String {
        format!("DatabaseTable[{}/{}]", self.options.address.place(), self.options.from.shown())
    }

    fn latest_offset(&mut self, _: Option<&Offset>, _: ReadLimit) -> Result<Option<Offset>, SourceError> {
        Ok(Some(0.into()))
    }

    fn read(
        &mut self,
        start: Option<&Offset>,
        _: &Offset,
        projection: &[usize],
    ) -> Result<Vec<Vec<RecordBatch>>, SourceError> {
        if start.is_some() {
            return Ok(Vec::new());
        }
        let misfit = |reason: String| SourceError::Schema { name: self.name.clone(), reason };
        let projected = Arc::new(self.schema.project(projection).map_err(|error| misfit(error.to_string()))?);
        // A server that is away for a moment does not end a query that reads its table now and then.
        let rows = patiently(&self.name, &self.stop, || {
            let opened = D::Connection::open(&self.options.address, "millstream table", &self.stop);
            let mut connection = opened.map_err(failed(&self.name, "connect"))?;
            let (mut rows, from) = (Vec::new(), self.options.from.text(D::PRODUCT));
            D::read(&self.name, &mut connection, &from, &projected, &mut |batch| {
                rows.push(batch);
                Ok(())
            })?;
            Ok(rows)
        })?;
        Ok(vec![rows])
    }

    fn prepare_available_now(&mut self) -> Result<(), SourceError> {
        Ok(())
    }
}
