// Package rank is what runs in each container of a batch script to start tasks
// there: the first process of a rank that waits, and a process that the first
// srun begins in the rank of the script. It starts tasks for srun, and in the
// first rank divides cores and GPUs among steps. It keeps nothing on disk; what it
// starts ends with it.
package rank
