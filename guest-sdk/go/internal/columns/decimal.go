package columns

import (
	"strconv"
	"strings"
)

// Decimal is a row of a column of DECIMAL, and its scale.
func (c *Column) Decimal(row int) (value Decimal, scale int) {
	c.check(row, Decimal128)
	halves := slice[uint64](c.values, 2*c.rows)
	_, digits, _ := strings.Cut(c.field.Format, ",")
	scale, _ = strconv.Atoi(digits)
	return Decimal{High: int64(halves[2*row+1]), Low: halves[2*row]}, scale
}
