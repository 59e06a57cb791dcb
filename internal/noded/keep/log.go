package keep

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/oci/logs"
)

// Source is a rank whose log is sent.
type Source struct {
	ID   job.RankID
	UUID string // of its job
	Dir  string // of the rank: names it here
	Over bool   // it has ended, whatever its files say
}

// What one rank may send, so that one that writes without end costs others
// nothing: so much in a second, and more in the beginning. Where it writes more
// than the node keeps until it is sent, the part between is left out, and what
// is sent goes on with the newest.
const (
	rankRate  = 2 << 20
	rankBurst = 8 << 20
	newest    = 8 << 20
)

// log is the log of a source on its way.
type log struct {
	Source
	off    int64 // of the next byte to be sent
	end    int64 // of the log, when it was looked at last
	ahead  int64 // end when off had come so far last, or at first
	since  time.Time
	budget *rate.Limiter
	rest   time.Time // not to be sent before
	unread bool      // it could not be read, which was said
}

func newLog(s Source) *log {
	return &log{Source: s, budget: rate.NewLimiter(rankRate, rankBurst)}
}

// look finds out how much there is to send. It gives no log where there is none
// yet.
func (l *log) look(now time.Time, open func(dir string) (*logs.Log, error)) (r *logs.Log, ended bool, err error) {
	if r, err = open(l.Dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, false, err
	}
	ended = l.Over || r.Ended() // before the end is looked at: what was written by then is seen
	if l.end, err = r.End(); err != nil {
		r.Close()
		return nil, false, err
	}
	if l.off >= l.ahead && l.end > l.off {
		l.ahead, l.since = l.end, now
	}
	return r, ended, nil
}

// age is for how long the oldest byte waits that is not sent.
func (l *log) age(now time.Time) time.Duration {
	if l.off >= l.ahead {
		return 0
	}
	return now.Sub(l.since)
}

// next is the next piece of at most so many bytes, nil if there is none, and
// how many bytes of output are in it.
func (l *log) next(now time.Time, r *logs.Log, ended bool, most int64) (*api.LogPiece, int64, error) {
	most = min(most, api.MaxLogPiece, int64(l.budget.TokensAt(now)))
	p := &api.LogPiece{Rank: l.ID, UUID: l.UUID, Offset: l.off}
	var data []byte
	for off := l.off; int64(len(data)) < most; {
		c, err := r.ReadAt(off)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		if c.Dropped > 0 {
			if len(data) > 0 {
				break // with the next piece
			}
			if from := l.end - newest; from > c.Offset {
				if c, err = r.ReadAt(from); err != nil {
					return nil, 0, err
				}
			}
			p.Offset, p.Lost = c.Offset, c.Offset-l.off
		}
		c.Data = c.Data[:min(int64(len(c.Data)), most-int64(len(data)))]
		data = append(data, c.Data...)
		off = c.Offset + int64(len(c.Data))
	}
	// That a log is empty is told with the rank's end, unless that does not say it.
	p.End = ended && p.Offset+int64(len(data)) >= l.end && (l.end > 0 || l.Over)
	if len(data) == 0 && !p.End {
		return nil, 0, nil
	}
	l.budget.AllowN(now, len(data))
	p.Data = pack(data)
	return p, int64(len(data)), nil
}

// packers are compressors that are used again: each has 1.2 MB of tables, and most
// pieces are a few lines.
var packers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is one that there is
	}
	return w
}}

func pack(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	w.Write(data) // a buffer takes everything
	w.Close()
	return b.Bytes()
}
