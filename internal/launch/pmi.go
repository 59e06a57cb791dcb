package launch

// What ranks of a step and its srun say to each other for programs of MPI that
// speak PMI: each rank tells what its tasks have put when all of them wait at a
// barrier; srun tells all ranks what all have put, and with that lets them go on.

// PMIBarrier is the body of a KindPMI frame.
type PMIBarrier struct {
	Put   map[string]string `json:"put,omitempty"`
	Abort *int              `json:"abort,omitempty"` // from a rank: a task wants the step to end with this code
}
