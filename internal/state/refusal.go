package state

// Refusal is the answer to an event that the controller will not do, in words
// for the user.
type Refusal struct {
	Code    Code
	Message string
	Hint    string
	Path    string // in the job document, where the refusal is about one field
}

func (r *Refusal) Error() string { return r.Message }

// Code is the kind of a refusal.
type Code string

// The codes.
const (
	NotFound      Code = "not_found"
	Conflict      Code = "conflict"
	Denied        Code = "denied"
	Unsatisfiable Code = "unsatisfiable"
	OverLimit     Code = "over_limit" // the queue, or what the user, project or QOS may have in it, is full
)
