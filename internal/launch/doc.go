// Package launch is what programs inside of a batch script's containers say to
// each other to start tasks: srun to the first rank, which divides the job's
// cores and GPUs among steps and has them numbered by the node, and then to each
// rank of the step, which starts its tasks. It has the messages, the frames that
// they travel in, and how tasks are laid out; it starts nothing. Nothing of it is
// trusted by a node or the controller: all of it runs with the job's own rights.
package launch
