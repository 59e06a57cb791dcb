package slurm

import (
	"fmt"
	"strings"

	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/table"
)

// memoryUnits are each 1024 of the one before.
const memoryUnits = "KMGTP"

// asKept is the unit of amounts that are not converted: each has the one that Slurm
// keeps it in.
const asKept = '-'

// amount writes bytes in the unit of the view: as Slurm does, with two digits behind the
// point where it is not whole.
func amount(v *table.View, n int64, kept byte) string {
	unit := v.Unit
	if unit == asKept {
		unit = kept
	}
	value := float64(n) / float64(int64(1)<<(10*(strings.IndexByte(memoryUnits, unit)+1)))
	switch {
	case n == 0:
		return "0"
	case value == float64(int64(value)):
		return fmt.Sprintf("%d%c", int64(value), unit)
	}
	return fmt.Sprintf("%.2f%c", value, unit)
}

// wantedUnit is what --units asks for.
func wantedUnit(text string) (byte, error) {
	if len(text) != 1 || !strings.Contains(memoryUnits, strings.ToUpper(text)) {
		return 0, exit.Usagef("Invalid unit type: %s; there are K, M, G, T and P", text)
	}
	return strings.ToUpper(text)[0], nil
}
