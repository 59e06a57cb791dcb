package nodes

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// records is how far the controller's records had come at an answer. Nodes keep it,
// and say it at each sync: a store that was put back from an older copy, with all
// that lies beside it, cannot know of that by itself. It is signed, as one node's
// word puts all jobs that wait on hold. By when the node was answered it is told how old its disk is.
type records struct {
	state.Point
	Next job.Number `json:"next"` // number of the next job
	At   sched.Time `json:"at"`   // when the node was answered; 0: by an older controller
}

// sinceTold is how many jobs may have been submitted since a node was told last.
const sinceTold = 100_000

// tell is what the node that is answered now shall keep.
func (s *Exchange) tell() string {
	// The view is older than the point or as old, and its numbers are durable.
	text, err := json.Marshal(records{Next: s.Loop.View().Next, Point: s.Loop.Point(), At: sched.Time(s.Loop.Now().UnixMilli())})
	if err != nil {
		panic(err) // plain numbers
	}
	return base64.RawURLEncoding.EncodeToString(text) + "." + s.sign(text)
}

// told reads what this controller, or one before it with the same key, once told a
// node. Anything else, as what another controller wrote, says nothing.
func (s *Exchange) told(token string) (r records, ok bool) {
	body, sum, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || !hmac.Equal([]byte(sum), []byte(s.sign(text))) {
		return r, false
	}
	return r, json.Unmarshal(text, &r) == nil
}

func (s *Exchange) sign(text []byte) string {
	h := hmac.New(sha256.New, s.Key)
	h.Write(text)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
