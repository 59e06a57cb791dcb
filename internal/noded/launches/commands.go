package launches

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"gbatch/internal/api"
	"gbatch/internal/launch"
)

// Commands is the socket by which sbatch and the like in a container ask the
// controller. What they ask goes on as it is, as what the job asks; which of it a job
// may ask, the controller knows.
type Commands struct {
	server *http.Server
	done   sync.WaitGroup
}

// Bounds of what one container asks.
const (
	maxAsking   = 8 // connections; more wait
	maxHeader   = 16 << 10
	headerTime  = 10 * time.Second
	idleAsking  = time.Minute
	apiPrefix   = "/v1/"
	askRefusal  = "only the API of gctld below " + apiPrefix + " can be asked here, by GET and POST"
	notAnswered = "the controller does not answer at the moment; the job goes on"
)

// OpenCommands listens in a rank's directory; ask is what passes requests on.
func OpenCommands(dir string, ask http.Handler, log *slog.Logger) (*Commands, error) {
	l, err := listen(dir, filepath.Base(launch.API))
	if err != nil {
		return nil, err
	}
	c := &Commands{server: &http.Server{
		Handler: guarded(ask), ReadHeaderTimeout: headerTime, IdleTimeout: idleAsking, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	c.done.Go(func() { // ends with Close, which waits for it
		if err := c.server.Serve(netutil.LimitListener(l, maxAsking)); err != http.ErrServerClosed {
			log.Error("the job cannot call sbatch and the like any more", "error", err)
		}
	})
	return c, nil
}

// Close ends what is asked, and waits until nothing is served any more.
func (c *Commands) Close() {
	_ = c.server.Close()
	c.done.Wait()
}

func guarded(ask http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, apiPrefix) {
			answer(w, api.Errorf(api.CodeDenied, askRefusal))
			return
		}
		ask.ServeHTTP(w, r)
	})
}

// Unreached answers where the controller does not.
func Unreached(w http.ResponseWriter, _ *http.Request, _ error) {
	answer(w, api.Errorf(api.CodeUnavailable, notAnswered).WithHint("try again in a few seconds"))
}

func answer(w http.ResponseWriter, e *api.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(e) // who does not read it has gone
}
