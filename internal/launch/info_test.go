package launch

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestAsksAPI: who may ask the controller waits for the socket, which comes when the program runs already; who may not does not wait.
func TestAsksAPI(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "api")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if (&Info{}).asks(socket, time.Minute) || time.Since(began) > 0 {
			t.Error("one that may not ask waits")
		}
		if (&Info{Commands: true}).asks(socket, time.Minute) || time.Since(began) < time.Minute {
			t.Error("one that may ask does not wait")
		}
		go func() {
			time.Sleep(time.Second)
			if err := os.WriteFile(socket, nil, 0o600); err != nil {
				t.Error(err)
			}
		}()
		began = time.Now()
		if !(&Info{Commands: true}).asks(socket, time.Minute) || time.Since(began) > 2*time.Second {
			t.Error("it is not found")
		}
		if !(&Info{}).asks(socket, 0) {
			t.Error("of an earlier daemon it is not found")
		}
	})
}
