package queue

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

func manyJobs(n int) *api.JobList {
	l := &api.JobList{Total: n}
	for i := range n {
		j := clitest.SampleJobs()[1].Job
		j.Number, j.Name = job.Number(i+1), fmt.Sprintf("train-%d", i)
		if i%10 == 0 {
			j.State, j.Started, j.Nodes, j.Reason, j.ReasonText = job.Running, clitest.Now, []string{fmt.Sprintf("gpu%02d", i%64)}, "", ""
		}
		l.Jobs = append(l.Jobs, j)
	}
	return l
}

// BenchmarkRender draws the default list of 10,000 jobs.
func BenchmarkRender(b *testing.B) {
	many := manyJobs(10_000)
	app := &cli.App{Out: io.Discard, Err: io.Discard}
	app.Now = clitest.Clock
	list := List{}
	form, err := list.layout()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := list.print(app, many, form); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkQueue is gqueue of 10,000 jobs: receive, decode and draw; the
// budget is 30 ms.
func BenchmarkQueue(b *testing.B) {
	data, err := json.Marshal(manyJobs(10_000))
	if err != nil {
		b.Fatal(err)
	}
	s := clitest.Start(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(data) }))
	app := &cli.App{Out: io.Discard, Err: io.Discard, Client: &client.Client{Address: s.Socket}, Now: clitest.Clock}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := (&List{}).Run(b.Context(), app); err != nil {
			b.Fatal(err)
		}
	}
}
