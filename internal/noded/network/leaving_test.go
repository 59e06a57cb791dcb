package network

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLeaving: networks of ended ranks are taken away together, a second after the first
// of them at the latest, earlier where many wait or addresses are needed, and all at the end.
func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var gone [][]string
		l := leaving{log: slog.New(slog.DiscardHandler), detach: func(owners ...string) error {
			mu.Lock()
			defer mu.Unlock()
			if len(owners) > 0 {
				gone = append(gone, owners)
			}
			return nil
		}}
		want := func(what string, groups ...[]string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(groups, gone); diff != "" {
				t.Errorf("%s: taken away together (-want +got):\n%s", what, diff)
			}
			gone = nil
		}
		ns, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer ns.Close()
		for _, o := range []string{"a", "b", "c", "d", "e"} {
			l.hold(o, ns)
		}
		if l.leave("unknown") {
			t.Error("the network of one that is not held is said to be taken away")
		}
		l.leave("a")
		time.Sleep(leavingFor / 2)
		l.leave("b")
		want("before the second is over")
		time.Sleep(leavingFor / 2)
		want("a second after the first", []string{"a", "b"})
		if l.leave("a") {
			t.Error("a network that is gone is said to be taken away")
		}

		l.hold("a", ns)
		l.leave("a")
		l.begin("a")
		want("a new network for one that had one", []string{"a"})

		l.leave("c")
		l.leave("c")
		if !l.clear() || l.clear() {
			t.Error("clear says wrongly whether it took any away")
		}
		want("addresses are needed", []string{"c"})
		time.Sleep(2 * leavingFor)
		want("nothing has left since")

		var many []string
		for i := range leavingMost {
			many = append(many, fmt.Sprint(i))
			l.hold(many[i], ns)
			l.leave(many[i])
		}
		want("as many as may wait", many)

		l.leave("d")
		l.close()
		want("the daemon ends", []string{"d"})
		if l.leave("e") {
			t.Error("a network is said to be taken away after the end")
		}
	})
}
