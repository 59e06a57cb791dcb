// Package convert reads job files of other systems for clients that cannot, as the
// web page. It submits nothing and keeps nothing.
package convert

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/places"
	"gbatch/internal/job"
	"gbatch/internal/job/importer"
)

// To read a file takes processors and memory of ours: half of the processors read
// at a time, and so many files wait.
const waiting = 100

// Handlers convert files.
type Handlers struct {
	gate *places.Gate
	now  func() time.Time
}

// New makes them.
func New(now func() time.Time) *Handlers {
	return &Handlers{gate: places.NewGate(max(runtime.GOMAXPROCS(0)/2, 1), waiting), now: now}
}

type input struct{ Body api.ConvertRequest }

// Convert answers with the native document of a job file. Secrets are in it as they
// are in the file: it goes to nobody but who sent that.
func (h *Handlers) Convert(ctx context.Context, in *input) (*api.ConvertResponse, error) {
	leave, ok := h.gate.Enter(ctx, access.Caller(ctx).User)
	if !ok {
		return nil, api.Errorf(api.CodeUnavailable, "too many files are converted at a time").WithHint("try again")
	}
	defer leave()
	zone, err := time.LoadLocation(in.Body.Zone)
	if err != nil || in.Body.Zone == "Local" {
		return nil, api.Errorf(api.CodeBadRequest, "there is no time zone %q", in.Body.Zone).WithHint("as Europe/Berlin; none is UTC")
	}
	data := []byte(in.Body.Text)
	format, err := importer.Detect(data)
	if err != nil {
		return nil, err
	}
	sub, err := importer.Parse(data, importer.Options{Format: format, Image: in.Body.Image, Now: job.Instant(h.now().UnixMilli()), Zone: zone})
	if err != nil {
		return nil, err
	}
	out := &api.ConvertResponse{Format: string(format)}
	for _, n := range sub.Notes {
		out.Notes = append(out.Notes, api.Note{Path: n.Path, Message: n.Message})
	}
	for _, b := range sub.Brought {
		what := b.From + " of your machine"
		if b.Clone != nil {
			what = "the repository"
		}
		out.Notes = append(out.Notes, api.Note{Message: fmt.Sprintf("%s is not brought along to %s: submit this file with gsubmit where that is", what, b.Path)})
	}
	if sub.Hold {
		out.Notes = append(out.Notes, api.Note{Message: "it asks to be held: hold the job when it is submitted"})
	}
	if out.Job, err = sub.Document(); err != nil {
		return nil, fmt.Errorf("encode the job: %w", err)
	}
	return out, nil
}
