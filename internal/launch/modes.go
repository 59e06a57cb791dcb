package launch

// Names by which the program in the containers of batch scripts is called with one
// argument or more, beside the commands that it has links for.
const (
	ModeAllocation = "allocation" // the first process of what salloc gets
	ModeHold       = "hold"       // keeps an allocation for somebody outside
	ModeInside     = "inside"     // takes tasks in a container of a step's; behind it the variables that its image sets
	ModePut        = "put"        // writes its input into a file: see sbcast
)

// Held is what ModeHold writes, behind the job's variables with a zero byte behind
// each, once the job is held.
const Held = "held"

// Attended is the variable by which srun outside of a container says that signals are
// from somebody who called it.
const Attended = "GBATCH_ATTENDED"

// BesideOption is an option of srun, which Slurm's has not: its task begins where those of
// another step of the job are, in the container that they are in.
const BesideOption = "beside"
