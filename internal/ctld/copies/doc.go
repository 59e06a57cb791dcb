// Package copies has the complete logs and the uploaded directories that the controller
// which leads keeps at the others, too: it gives them, and gets back what it lacks, over
// the port by which controllers reach each other. So they are there when its machine is
// lost.
package copies
