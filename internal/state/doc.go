// Package state is what the controller knows, as values: jobs, nodes, the table
// that holds them, the records that they are stored as, and the View that others
// read. What becomes of them is decided in internal/control.
//
// Values are copied on write: a *Job or *Node that a View holds is never
// modified. Whoever makes a changed copy owns it until it is in the table.
package state
