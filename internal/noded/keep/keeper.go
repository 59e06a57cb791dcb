package keep

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/oci/logs"
)

// Controller takes pieces of logs.
type Controller interface {
	SendLogs(ctx context.Context, name string, req *api.LogPieces) (*api.LogsTaken, error)
}

// Options are what a keeper needs.
type Options struct {
	Node       string // its name
	Controller Controller
	Open       func(dir string) (*logs.Log, error) // of a rank's directory
	Done       func(dir string)                    // all of the log is kept, or nobody wants it
	Log        *slog.Logger
}

// Keeper sends the logs of a node, of each in its turn. Its goroutine is Run.
type Keeper struct {
	Options
	budget *rate.Limiter

	mu   sync.Mutex
	list []*log // in the order of their turns
}

// What one node may send in a second, and in one request: of output, and of that
// when it is packed.
const (
	nodeRate   = 8 << 20
	nodeBurst  = 16 << 20
	maxRequest = 4 << 20
	maxPacked  = 1 << 20
)

// How often there is a look at what was written, and how long a log rests that is
// not taken at the moment. What is written is at the controller when half of
// the promised five seconds are over.
const (
	lookEvery = 2 * time.Second
	restTime  = 10 * time.Second
)

// New has nothing to send.
func New(o Options) *Keeper {
	return &Keeper{Options: o, budget: rate.NewLimiter(nodeRate, nodeBurst)}
}

// Add has a rank's log sent, from where the controller has it.
func (k *Keeper) Add(s Source) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.ContainsFunc(k.list, func(l *log) bool { return l.Dir == s.Dir }) {
		k.list = append(k.list, newLog(s))
	}
}

// Over says that a rank has ended.
func (k *Keeper) Over(dir string) { k.change(dir, func(l *log) { l.Over = true }) }

// Moved says that a rank's directory has another name.
func (k *Keeper) Moved(from, to string) { k.change(from, func(l *log) { l.Dir = to }) }

func (k *Keeper) change(dir string, f func(*log)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.list {
		if l.Dir == dir {
			f(l)
		}
	}
}

// Drop forgets a rank, whose files are gone. What of its log was not sent is lost, and
// said.
func (k *Keeper) Drop(dir string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = slices.DeleteFunc(k.list, func(l *log) bool {
		if l.Dir == dir && l.end > l.off {
			k.Log.Warn("log removed before all of it was kept elsewhere", "rank", l.ID, "bytes", l.end-l.off)
		}
		return l.Dir == dir
	})
}

// Waiting is how many bytes are not sent, and for how long the oldest waits.
func (k *Keeper) Waiting() (bytes int64, age time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for _, l := range k.list {
		bytes += max(0, l.end-l.off)
		age = max(age, l.age(now))
	}
	return bytes, age
}

// Run sends until ctx ends. What is not sent then is sent by the next daemon.
func (k *Keeper) Run(ctx context.Context) {
	var pause client.Backoff
	failed := false
	for {
		pieces, sent, more := k.collect(time.Now())
		wait := lookEvery
		if len(pieces) > 0 {
			taken, err := k.Controller.SendLogs(ctx, k.Node, &api.LogPieces{Pieces: pieces})
			switch {
			case ctx.Err() != nil:
				return
			case err != nil || len(taken.Pieces) != len(pieces):
				if !failed {
					k.Log.Info("the controller takes no logs at the moment; they are kept here and sent later", "error", err)
				}
				failed, wait = true, max(lookEvery, pause.Next())
			default:
				failed = false
				pause.Reset()
				k.taken(sent, taken.Pieces)
				if more {
					wait = 0
				}
			}
		}
		if client.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// collect takes from each log in its turn, as much as one request takes. More
// says that there is more to be sent at once.
func (k *Keeper) collect(now time.Time) (pieces []api.LogPiece, sent []*log, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	left := min(int64(maxRequest), int64(k.budget.TokensAt(now)))
	packed, output := 0, int64(0)
	for i, l := range k.list {
		if l.rest.After(now) {
			continue
		}
		if left <= 0 || packed >= maxPacked-api.MaxLogPiece || len(pieces) >= api.MaxLogPieces {
			k.list = slices.Concat(k.list[i:], k.list[:i]) // whose turn it is next
			more = left > 0
			break
		}
		p, n := k.piece(now, l, left)
		if p == nil {
			continue
		}
		pieces, sent = append(pieces, *p), append(sent, l)
		packed += len(p.Data)
		left -= n
		output += n
		more = more || n == api.MaxLogPiece
	}
	k.budget.AllowN(now, int(output))
	return pieces, sent, more
}

// piece is the next of a log, nil if there is none. A log that cannot be read
// rests; its errors are its node's.
func (k *Keeper) piece(now time.Time, l *log, most int64) (*api.LogPiece, int64) {
	r, ended, err := l.look(now, k.Open)
	if err == nil && r != nil {
		defer r.Close()
		var p *api.LogPiece
		var n int64
		if p, n, err = l.next(now, r, ended, most); err == nil {
			l.unread = false
			return p, n
		}
	}
	if err != nil {
		if !l.unread {
			k.Log.Warn("log cannot be read to be sent; it is tried again", "rank", l.ID, "error", err)
		}
		l.rest, l.unread = now.Add(restTime), true
	}
	return nil, 0
}

// taken goes on where the controller says.
func (k *Keeper) taken(sent []*log, answers []api.LogTaken) {
	k.mu.Lock()
	var over []*log
	for i, l := range sent {
		a := answers[i]
		switch {
		case a.Later:
			l.rest = time.Now().Add(restTime)
		case a.Refused != "":
			k.Log.Warn("the controller keeps no log of a rank", "rank", l.ID, "reason", a.Refused)
			over = append(over, l)
		case a.Done || l.Over && a.Offset > l.end: // it has more than there is here
			over = append(over, l)
		default:
			l.off = max(0, a.Offset)
		}
	}
	k.list = slices.DeleteFunc(k.list, func(l *log) bool { return slices.Contains(over, l) })
	k.mu.Unlock()
	for _, l := range over {
		k.Done(l.Dir)
	}
}
