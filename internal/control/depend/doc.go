// Package depend is who waits for whom. A job may wait for others: what it waits
// for is kept with it as conditions on jobs of the table, and is looked at when
// one of these begins or ends, so that a round costs nothing by it. Only jobs that
// are there can be named, so no two can wait for each other.
//
// It says what becomes of conditions. The jobs are changed by internal/control,
// which owns the Set.
package depend
