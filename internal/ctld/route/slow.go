package route

import (
	"net/http"
	"time"
)

// answerTime is how long a client may take to read an answer, from when it
// begins. A client that never reads holds the answer's memory no longer.
const answerTime = time.Minute

// What one user has in memory at once; more waits.
const (
	maxLarge   = 8        // large answers, of a queue of usual length
	maxAnswers = 32       // answers that have a job's document and timeline, a few MiB at most
	maxBodies  = 16 << 20 // bytes of bodies that are read and worked on
)

// bounded gives an answer a deadline, which begins with its first byte: before,
// the request may be a long poll.
func bounded(w http.ResponseWriter, kind answerKind) http.ResponseWriter {
	if kind == endlessAnswer {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // of an earlier request
		return w
	}
	return &deadlineWriter{ResponseWriter: w}
}

type deadlineWriter struct {
	http.ResponseWriter
	begun bool
	made  func() // the answer is worked out; nil: nobody is to know
}

func (d *deadlineWriter) begin() {
	if !d.begun {
		d.begun = true
		_ = http.NewResponseController(d.ResponseWriter).SetWriteDeadline(time.Now().Add(answerTime))
	}
}

func (d *deadlineWriter) WriteHeader(status int) {
	d.begin()
	d.ResponseWriter.WriteHeader(status)
}

func (d *deadlineWriter) Write(p []byte) (int, error) {
	d.begin()
	if d.made != nil {
		d.made()
	}
	return d.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (d *deadlineWriter) Unwrap() http.ResponseWriter { return d.ResponseWriter }
