// Package array is the arrays that are not over: which of an array's tasks are
// jobs, how many more may become jobs, and which wait for tasks of other arrays.
// It says what an array comes to; what follows of it, jobs made and ended, is
// done by internal/control, which owns the Set and the jobs.
package array
