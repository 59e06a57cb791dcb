package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
)

// TestListCut: a list is read while it comes. One that broke is asked for again, and nothing of the first
// answer is left in it; what is no list is an error that another try does not mend; and what a
// controller says of how many rows come is not believed.
func TestListCut(t *testing.T) {
	const whole = `{"jobs":[{"id":"1","name":"a"},{"id":"2"}],"total":2}`
	const before = `{"jobs":[{"id":"8","name":"x","comment":"y"},{"id":"9"},{"id":"10"}],"total":3,"noUser":true}`
	answer := func(body io.Reader, rows string) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(body), Header: http.Header{api.HeaderRows: {rows}}}, nil
	}
	want := &api.JobList{Jobs: []api.Job{{ID: "1", Name: "a"}, {ID: "2"}}, Total: 2}
	for at := range len(before) {
		tries := 0
		c := &Client{Address: "/none", Retry: Retry{For: time.Hour, Sleep: func(context.Context, time.Duration) error { return nil }}, Transport: transport(func(*http.Request) (*http.Response, error) {
			if tries++; tries == 1 {
				return answer(io.MultiReader(strings.NewReader(before[:at]), failing{io.ErrUnexpectedEOF}), "3")
			}
			return answer(strings.NewReader(whole), fmt.Sprint(int64(1)<<(at%63)))
		})}
		got, err := c.Jobs(t.Context(), JobFilter{})
		if diff := cmp.Diff(want, got); err != nil || tries != 2 || diff != "" {
			t.Errorf("cut at byte %d: %d tries, %v (-want +got):\n%s", at, tries, err, diff)
		}
	}
	for _, bad := range []string{"", "{", whole + "x", `{"jobs":7}`} {
		tries := 0
		c := &Client{Address: "/none", Transport: transport(func(*http.Request) (*http.Response, error) {
			tries++
			return answer(strings.NewReader(bad), "-7")
		})}
		_, err := c.Jobs(t.Context(), JobFilter{})
		if _, broken := errors.AsType[*Unreachable](err); err == nil || broken || tries != 1 {
			t.Errorf("%q: %d tries, %v", bad, tries, err)
		}
	}
}
