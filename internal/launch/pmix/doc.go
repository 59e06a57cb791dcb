// Package pmix serves the tasks of one rank that have a PMIx library, as those of
// Open MPI: it tells them of their job, keeps what they put for each other, has
// them wait for each other, and passes to srun what concerns other ranks. It
// starts no process and knows nothing of containers. A step's server keeps nothing
// beyond it.
package pmix
