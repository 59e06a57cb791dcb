package launch

// What ranks of a step and its srun say to each other for programs that speak
// PMIx. srun has no data of its own: it brings together what ranks say at a fence,
// and passes on what one wants of another.

// PMIx is the body of a KindPMIx frame: one of these.
type PMIx struct {
	Fence *PMIxFence `json:"fence,omitempty"`
	Want  *PMIxWant  `json:"want,omitempty"`
	Abort *PMIxAbort `json:"abort,omitempty"` // from a rank
}

// PMIxFence says to srun that all tasks of a rank that take part wait at a fence,
// and to ranks that all tasks do.
type PMIxFence struct {
	Tasks []int          `json:"tasks,omitempty"` // that take part, in order; none: all
	Data  map[int][]byte `json:"data,omitempty"`  // what tasks have put for other nodes
	More  bool           `json:"more,omitempty"`  // this is a part, and more follows
}

// PMIxWant asks the rank of a task for what the task has put, by srun, and is
// answered with Done.
type PMIxWant struct {
	From   int    `json:"from"` // that asks: index in Layout.Placed
	ID     uint64 `json:"id"`   // by which it knows the answer
	Task   int    `json:"task"`
	Key    string `json:"key,omitempty"`    // that is looked for
	WaitMS int64  `json:"waitMs,omitempty"` // 0: not given

	Done   bool   `json:"done,omitempty"`
	Status int32  `json:"status,omitempty"`
	Data   []byte `json:"data,omitempty"`
}

// PMIxAbort ends the step: Code is what a task gave when it asked for that; nil: it
// cannot go on.
type PMIxAbort struct {
	Code *int   `json:"code,omitempty"`
	Text string `json:"text"` // why, behind the task's number
}

// PMIxPart is how many bytes of data go into one frame; PMIxTask bounds those of
// one task.
const (
	PMIxPart = 4 << 20
	PMIxTask = 4 << 20
)

// Parts cuts what is said of a fence into frames.
func (f PMIxFence) Parts() (list []PMIx) {
	part, size := PMIxFence{Tasks: f.Tasks, More: true}, 0
	for task, data := range f.Data {
		if size > 0 && size+len(data) > PMIxPart {
			whole := part
			list = append(list, PMIx{Fence: &whole})
			part.Data, size = nil, 0
		}
		if part.Data == nil {
			part.Data = map[int][]byte{}
		}
		part.Data[task], size = data, size+len(data)
	}
	part.More = false
	return append(list, PMIx{Fence: &part})
}
