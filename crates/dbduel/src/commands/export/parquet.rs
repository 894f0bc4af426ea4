//! Tables as Apache Parquet: one row group, every column optional.

use std::sync::Arc;

use anyhow::Result;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::table::{Cell, Kind, Table};

/// The file's bytes.
///
/// # Errors
/// When the format does not allow a column's name or type.
pub fn bytes(table: &Table) -> Result<Vec<u8>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("dbduel ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut writer =
        SerializedFileWriter::new(Vec::new(), Arc::new(schema(table)?), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (index, (_, kind)) in table.columns.iter().enumerate() {
        let cells = || table.rows.iter().map(move |row| &row[index]);
        match kind {
            Kind::Text => column::<ByteArrayType>(&mut group, cells(), |cell| match cell {
                Cell::Text(text) => Some(ByteArray::from(text.as_str())),
                _ => None,
            })?,
            Kind::Whole => column::<Int64Type>(&mut group, cells(), |cell| match cell {
                Cell::Whole(value) => Some(*value),
                _ => None,
            })?,
            Kind::Real => column::<DoubleType>(&mut group, cells(), |cell| match cell {
                Cell::Real(value) => Some(*value),
                _ => None,
            })?,
        }
    }
    group.close()?;
    Ok(writer.into_inner()?)
}

fn schema(table: &Table) -> Result<Type> {
    let columns = table.columns.iter().map(|(name, kind)| {
        let (physical, logical) = match kind {
            Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Whole => (PhysicalType::INT64, None),
            Kind::Real => (PhysicalType::DOUBLE, None),
        };
        let column = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        Ok(Arc::new(column.build()?))
    });
    let columns: Result<Vec<_>> = columns.collect();
    let root = Type::group_type_builder(table.name).with_fields(columns?);
    Ok(root.build()?)
}

fn column<'a, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    cells: impl Iterator<Item = &'a Cell>,
    value: impl Fn(&Cell) -> Option<T::T>,
) -> Result<()> {
    let (mut values, mut is_present) = (Vec::new(), Vec::new());
    for cell in cells {
        let value = value(cell);
        is_present.push(i16::from(value.is_some()));
        values.extend(value);
    }
    if let Some(mut writer) = group.next_column()? {
        writer
            .typed::<T>()
            .write_batch(&values, Some(&is_present), None)?;
        writer.close()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::RowAccessor as _;

    use super::*;

    #[test]
    fn cells_are_read_back_as_they_were_and_missing_ones_are_null() {
        let columns = [
            ("text", Kind::Text),
            ("whole", Kind::Whole),
            ("source.metric", Kind::Real),
        ];
        let mut table = Table::new("one", &columns);
        table.push(vec![Cell::from("ä"), Cell::Whole(-7), Cell::Missing]);
        table.push(vec![Cell::Missing, Cell::Missing, Cell::Real(0.25)]);
        let file = bytes::Bytes::from(bytes(&table).unwrap());
        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = reader
            .get_row_iter(None)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].get_string(0).unwrap(), "ä");
        assert_eq!(rows[0].get_long(1).unwrap(), -7);
        assert!(rows[0].get_double(2).is_err());
        assert!((rows[1].get_double(2).unwrap() - 0.25).abs() < f64::EPSILON);
        let names: Vec<_> = rows[0]
            .get_column_iter()
            .map(|(name, _)| name.clone())
            .collect();
        assert_eq!(names, columns.map(|(name, _)| name));
    }

    #[test]
    fn a_table_without_rows_is_a_file_too() {
        let table = Table::new("none", &[("text", Kind::Text)]);
        let file = bytes::Bytes::from(bytes(&table).unwrap());
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    }
}
