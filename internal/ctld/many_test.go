package ctld

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
)

// many is n jobs in one request, by key k0, k1 ...
func many(n int) []api.KeyedSubmission {
	jobs := make([]api.KeyedSubmission, n)
	for i := range jobs {
		jobs[i] = api.KeyedSubmission{SubmitRequest: *hello(1), Key: fmt.Sprint("k", i)}
	}
	return jobs
}

// TestSubmitMany: each of several jobs is taken or refused for itself, in their
// order, with all that is wrong with it; and the same request again gives the same
// jobs.
func TestSubmitMany(t *testing.T) {
	s := newSite(t, nil)
	c := s.user("ann")
	jobs := many(5)
	jobs[1].Job = []byte(`{"request":{"docker":{},"resources":{"gpus":-1}}}`)
	jobs[2].DryRun = true
	jobs[4].Key = "k0" // the first again
	for again := range 2 {
		r, err := client.SubmitMany(t.Context(), c, jobs)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range r {
			if e := one.Error; e != nil {
				got = append(got, fmt.Sprint(e.Code, " ", min(len(e.Problems), 2)))
			} else {
				got = append(got, fmt.Sprint(one.Submitted.Number, " ", one.Submitted.Repeated))
			}
		}
		want := []string{"1 false", "invalid_job 2", "bad_request 0", "2 false", "1 true"}
		if again == 1 {
			want[0], want[3] = "1 true", "2 true"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	}
	if _, err := client.SubmitMany(t.Context(), c, many(api.MaxSubmissions+1)); !client.IsCode(err, api.CodeBadRequest) {
		t.Errorf("too many: %v", err)
	}
	r, err := client.SubmitMany(t.Context(), c, many(api.MaxSubmissions))
	if err != nil {
		t.Fatal(err)
	}
	last := job.Number(0)
	for i, one := range r {
		if n := one.Submitted.Number; i > 0 && i != 3 && n <= last {
			t.Fatalf("job %d has number %d, after %d", i, n, last)
		} else if i != 3 {
			last = max(last, n)
		}
	}
}

// TestManyCountsEach: jobs in one request count for a user's rate as they do alone, and
// those beyond it may come later.
func TestManyCountsEach(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.Limits.PerUser.Changes = 1 }) // and ten at once
	c := s.user("ann")
	r, err := client.SubmitMany(t.Context(), c, many(200))
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for _, one := range r {
		switch {
		case one.Error == nil:
			taken++
		case one.Error.Code != api.CodeTooMany:
			t.Error(one.Error)
		}
	}
	if taken < 10 || taken == 200 {
		t.Errorf("%d of 200 jobs were taken, of 10 at once", taken)
	}
}

// BenchmarkSubmitMany is durable submissions, 250 in a request, by one client.
func BenchmarkSubmitMany(b *testing.B) {
	_, c, _ := bench(b, b.TempDir())
	b.ResetTimer()
	began := time.Now()
	for sent := 0; sent < b.N; sent += api.MaxSubmissions {
		jobs := many(min(api.MaxSubmissions, b.N-sent))
		for i := range jobs {
			jobs[i].Key = ""
		}
		r, err := client.SubmitMany(b.Context(), c, jobs)
		if err != nil {
			b.Fatal(err)
		}
		for _, one := range r {
			if one.Error != nil {
				b.Fatal(one.Error)
			}
		}
	}
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "jobs/s")
	if l, err := c.Jobs(b.Context(), client.JobFilter{Limit: 1}); err != nil || l.Total != b.N {
		b.Errorf("%d jobs were acknowledged, the queue has %d (%v)", b.N, l.Total, err)
	}
}
