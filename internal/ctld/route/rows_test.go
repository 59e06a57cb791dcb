package route

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// listOf is a list of so many jobs, with what is encoded in other ways than as it is.
func listOf(rows int) api.JobList {
	l := api.JobList{Jobs: []api.Job{}, Total: rows + 2, NoUser: rows == 0}
	for i := range rows {
		l.Jobs = append(l.Jobs, api.Job{Number: job.Number(i), Name: "[]<&>\u2028\n\"", Nodes: []string{"a", "b]"}, GPUs: 0.5})
	}
	return l
}

// TestRowsInParts: a list that goes out in parts is, byte by byte, what it is in one.
func TestRowsInParts(t *testing.T) {
	for _, rows := range []int{0, 1, rowsInPart, rowsInPart + 1, 2 * rowsInPart, 1000} {
		var want, got bytes.Buffer
		if err := errors.Join(huma.DefaultJSONFormat.Marshal(&want, listOf(rows)), encode(&got, listOf(rows))); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Errorf("%d rows (-whole +in parts):\n%s", rows, diff)
		}
	}
}

// stopped is a client's connection that takes nothing until it is let go.
type stopped struct {
	http.ResponseWriter
	let  chan struct{}
	fail error
}

func (s stopped) Write(p []byte) (int, error) {
	<-s.let
	return len(p), s.fail
}

// TestRowsOfSlowReader: the next large list is worked out when this one is encoded, however slowly it is
// read, and not before. Who wrote it is told when the connection broke.
func TestRowsOfSlowReader(t *testing.T) {
	for _, fail := range []error{nil, errors.New("broken")} {
		made, over := make(chan struct{}), make(chan error)
		s := stopped{httptest.NewRecorder(), make(chan struct{}), fail}
		d := &deadlineWriter{ResponseWriter: s, made: func() { close(made) }}
		go func() { over <- encode(d, listOf(10_000)) }()
		<-made // while nobody reads
		close(s.let)
		if err := <-over; fmt.Sprint(err) != fmt.Sprint(fail) {
			t.Errorf("it ended with %v, want %v", err, fail)
		}
	}
}
