package client

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
)

// TestEventsCut: wherever a stream is cut, as by a controller that leads no more, the events that
// came whole are told and no other one. The caller is told that it is to go on, and from
// there the next controller leaves out none.
func TestEventsCut(t *testing.T) {
	const ping, told, last = "id: 5\nevent: ping\ndata: {}\n\n", "id: 6\nevent: node\ndata: {\"name\":\"n1\",\"state\":\"up\"}\n\n", "id: 7\nevent: ping\ndata: {}\n\n"
	whole := ping + told + last
	for at := range len(whole) {
		for how, end := range map[string]error{"ended": io.EOF, "broken": io.ErrUnexpectedEOF} {
			c := &Client{Address: "/none", Transport: transport(func(*http.Request) (*http.Response, error) {
				body := io.MultiReader(strings.NewReader(whole[:at]), failing{end})
				return &http.Response{StatusCode: 200, Body: io.NopCloser(body)}, nil
			})}
			var want, got []uint64
			for i, ends := range []int{len(ping), len(ping + told)} {
				if at >= ends {
					want = append(want, uint64(5+i))
				}
			}
			var ended error
			for ev, err := range c.Events(t.Context(), EventFilter{}) {
				if err != nil {
					ended = err
					break
				}
				if ev.ID == 6 && !cmp.Equal(ev.Node, &api.NodeEvent{Name: "n1", State: "up"}) {
					t.Errorf("%s at byte %d: told %+v", how, at, ev)
				}
				got = append(got, ev.ID)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s at byte %d: ids (-want +got):\n%s", how, at, diff)
			}
			if _, ok := errors.AsType[*Unreachable](ended); !ok {
				t.Errorf("%s at byte %d: it ended with %v", how, at, ended)
			}
		}
	}
}

// failing is what is read where nothing more comes.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
