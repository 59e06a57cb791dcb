package ctld

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"gbatch/internal/api"
)

// BenchmarkWatchers is what a thousand streams of events cost the controller: of listeners to one job each, and of open pages, which
// read their lists as well, half of them those of everyone's jobs. Told are the processor time while nothing happens, and while five
// jobs a second are submitted and five that are listened to end; that of one of these changes; and what each stream has of the heap,
// stacks included, and of goroutines when sixty jobs have ended at once. The other side is another process.
func BenchmarkWatchers(b *testing.B) {
	const span, count = 10 * time.Second, 1000
	s := benchSite(b)
	queued := 100_000
	if testing.Short() {
		queued = 2000
	}
	fill(b, s.server, queued)
	next := 50 // the job that ends next
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	cost := func(changes func(i int)) time.Duration { // of a span
		before := processorTime()
		for i := range int(span / (100 * time.Millisecond)) {
			<-tick.C
			changes(i)
		}
		return processorTime() - before
	}
	rest := func(int) {}
	busy := func(i int) {
		var err error
		if i%2 == 0 {
			_, err = s.Submit(b.Context(), hello(1), "")
		} else {
			_, err = s.Action(b.Context(), "cancel", &api.ActionRequest{IDs: []string{fmt.Sprint(next)}})
			next++
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	burst := func() { // sixty jobs that are told in one piece
		var ids []string
		for ; len(ids) < 60; next++ {
			ids = append(ids, fmt.Sprint(next))
		}
		if _, err := s.Action(b.Context(), "cancel", &api.ActionRequest{IDs: ids}); err != nil {
			b.Fatal(err)
		}
	}
	percent := func(d time.Duration) float64 { return 100 * float64(d) / float64(span) }
	cost(rest) // what filling left to do
	for _, w := range []struct {
		name    string
		readers pageReaders
	}{{"none", pageReaders{}}, {"listeners", pageReaders{Listeners: count}}, {"pages", pageReaders{Pages: count}}} {
		b.Run(w.name, func(b *testing.B) {
			for b.Loop() {
				memory, goroutines := held(), runtime.NumGoroutine()
				w.readers.From = next
				end := func() {}
				if w.name != "none" {
					end = s.startReaders(b, w.readers)
				}
				defer end()
				cost(rest) // their coming
				quiet := cost(rest)
				changing := cost(busy)
				burst()
				cost(rest) // each has heard of it
				b.ReportMetric(percent(quiet), "%-at-rest")
				b.ReportMetric(percent(changing), "%-busy")
				b.ReportMetric(float64((changing-quiet).Microseconds())/float64(span/(100*time.Millisecond)), "us/change")
				b.ReportMetric(float64(held()-memory)/1024/count, "KiB/watcher")
				b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/count, "goroutines/watcher")
				end()
				cost(rest) // their going
			}
		})
	}
}

// held is what the process has of memory that is not garbage, stacks included.
func held() int64 {
	for range 4 { // each halves stacks of which little is used
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
