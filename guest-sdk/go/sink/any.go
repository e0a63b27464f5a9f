package sink

import (
	"millstream/internal/columns"
)

// AnyRow is a row of whatever columns there are.
type AnyRow struct {
	// Names are the names of the columns.
	Names []string
	// Values are nil, bool, int8 to uint64, float32, float64, string, []byte, columns' Date, Timestamp, LocalTimestamp,
	// Decimal as AnyDecimal, []any and AnyRow.
	Values []any
}

// AnyDecimal is a DECIMAL with its scale: the value is Value divided by 10^Scale.
type AnyDecimal struct {
	Value columns.Decimal
	Scale int
}

// Get is the value of a column; nil where it is null, or not there.
func (r AnyRow) Get(column string) any {
	for i, name := range r.Names {
		if name == column {
			return r.Values[i]
		}
	}
	return nil
}

func anyRow(fields []columns.Field, read []columns.Column, row int) AnyRow {
	made := AnyRow{Names: make([]string, len(fields)), Values: make([]any, len(fields))}
	for i := range fields {
		made.Names[i], made.Values[i] = fields[i].Name, anyValue(&fields[i], &read[i], row)
	}
	return made
}

func anyValue(field *columns.Field, column *columns.Column, row int) any {
	if column.IsNull(row) {
		return nil
	}
	switch field.Format {
	case "b":
		return column.Bool(row)
	case "c":
		return columns.Values[int8](column)[row]
	case "C":
		return columns.Values[uint8](column)[row]
	case "s":
		return columns.Values[int16](column)[row]
	case "S":
		return columns.Values[uint16](column)[row]
	case "i":
		return columns.Values[int32](column)[row]
	case "I":
		return columns.Values[uint32](column)[row]
	case "l":
		return columns.Values[int64](column)[row]
	case "L":
		return columns.Values[uint64](column)[row]
	case "f":
		return columns.Values[float32](column)[row]
	case "g":
		return columns.Values[float64](column)[row]
	case "tdD":
		return columns.Date(columns.Values[int32](column)[row])
	case "tsu:UTC":
		return columns.Timestamp(columns.Values[int64](column)[row])
	case "tsu:":
		return columns.LocalTimestamp(columns.Values[int64](column)[row])
	case "u":
		return column.Text(row)
	case "z":
		return column.Binary(row)
	case "+l":
		begin, end := column.List(row)
		list := make([]any, 0, end-begin)
		for at := begin; at < end; at++ {
			list = append(list, anyValue(&field.Children[0], column.Child(0), at))
		}
		return list
	case "+s":
		made := AnyRow{}
		for i := range field.Children {
			made.Names = append(made.Names, field.Children[i].Name)
			made.Values = append(made.Values, anyValue(&field.Children[i], column.Child(i), row))
		}
		return made
	default:
		value, scale := column.Decimal(row)
		return AnyDecimal{value, scale}
	}
}
