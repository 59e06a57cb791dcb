package jobs_test

import (
	"fmt"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

// TestOrder proves that each column which shows numbers is ordered as numbers,
// and that a minus turns the order round.
func TestOrder(t *testing.T) {
	task := func(n job.Number, index int) api.Job { return api.Job{Number: n, Parent: 1, Task: &index} }
	ended := func(n job.Number, code int) api.Job { return api.Job{Number: n, ExitCode: new(code)} }
	factors := func(n job.Number, slowdown int64) api.Job {
		return api.Job{Number: n, Factors: &api.Priority{Slowdown: slowdown, Small: 1}}
	}
	tests := map[string]struct {
		jobs []api.Job
		want string
	}{
		"index":      {[]api.Job{task(3, 10), task(2, 9), {Number: 4}, {Number: 1, Tasks: &api.TaskSets{NumWaiting: 3, Waiting: "11-13"}}}, "4 2 3 1"},
		"-index":     {[]api.Job{task(2, 9), task(3, 10)}, "3 2"},
		"exit":       {[]api.Job{ended(2, 137), ended(3, 9), {Number: 4}, ended(5, 0)}, "4 5 3 2"},
		"other":      {[]api.Job{factors(2, 1000), factors(3, 200), {Number: 4}}, "4 3 2"},
		"K,-id":      {[]api.Job{{Number: 2}, task(5, 3), {Number: 3}}, "3 2 5"},
		"name,jobid": {[]api.Job{{Number: 9, Name: "a"}, {Number: 8, Name: "a"}, {Number: 7, Name: "b"}}, "8 9 7"},
	}
	for text, tc := range tests {
		order, err := jobs.Columns.Order(text)
		if err != nil {
			t.Fatal(err)
		}
		order.Sort(tc.jobs, table.View{Now: clitest.Now})
		var got []string
		for _, j := range tc.jobs {
			got = append(got, fmt.Sprint(j.Number))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %s, want %s", text, strings.Join(got, " "), tc.want)
		}
	}
}
