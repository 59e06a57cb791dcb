package route

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/danielgtaylor/huma/v2"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
)

// rowsInPart is how many jobs of a list are encoded at once, some 50 KiB.
const rowsInPart = 128

// Rows is JSON for a list of jobs. A long one goes out in parts, so that who asked
// reads the first while others are encoded, and is told before how many there are.
func Rows[I any](pattern string, who access.Level, h func(context.Context, *I) (*api.JobList, error)) Route {
	type rows struct {
		Rows int `header:"Gbatch-Rows" doc:"how many jobs the answer has"`
		Body api.JobList
	}
	return Route{Pattern: pattern, Who: who, serve: func(a huma.API, g *Guard, r *Route) {
		huma.Register(a, r.operation(), func(ctx context.Context, in *I) (*rows, error) {
			out, err := h(ctx, in)
			if err != nil {
				return nil, g.fail(ctx, r, err)
			}
			return &rows{len(out.Jobs), *out}, nil
		})
	}}
}

// encode writes v as huma does, and a long list of jobs in parts.
func encode(w io.Writer, v any) error {
	l, ok := v.(api.JobList)
	if !ok || len(l.Jobs) <= rowsInPart {
		return huma.DefaultJSONFormat.Marshal(w, v)
	}
	made := func() {}
	if d, ok := w.(*deadlineWriter); ok && d.made != nil {
		made, d.made = d.made, nil // not with the first byte
	}
	parts, written := make(chan []byte, len(l.Jobs)/rowsInPart+2), make(chan error, 1) // all have room: a slow reader does not hold up this one
	go func() {
		var err error
		for p := range parts {
			if err == nil {
				_, err = w.Write(p)
			}
		}
		written <- err
	}()
	err := encodeParts(&l, parts)
	close(parts)
	made()
	return errors.Join(err, <-written)
}

// encodeParts makes what encoding/json does of a list, in one part for the rows of each.
func encodeParts(l *api.JobList, parts chan<- []byte) error {
	rest := *l
	rest.Jobs = []api.Job{}
	whole, err := encoded(rest)
	if err != nil {
		return err
	}
	head, tail, _ := bytes.Cut(whole, []byte("[]"))
	part := append(head, '[')
	for at := 0; at < len(l.Jobs); at += rowsInPart {
		rows, err := encoded(l.Jobs[at:min(at+rowsInPart, len(l.Jobs))])
		if err != nil {
			return err
		}
		parts <- append(part, rows[1:len(rows)-2]...) // without brackets and the end of the line
		part = []byte{','}
	}
	parts <- append([]byte{']'}, tail...)
	return nil
}

// encoded is v as huma encodes it, with the end of a line.
func encoded(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
