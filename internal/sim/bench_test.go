package sim

import (
	"testing"
	"time"
)

// BenchmarkReplay is whole replays of real logs: a job is what is counted.
func BenchmarkReplay(b *testing.B) {
	for _, log := range []string{"KTH-SP2", "CTC-SP2"} {
		for _, policy := range []string{"easy", "gbatch"} {
			b.Run(log+"/"+policy, func(b *testing.B) {
				w := readTrace(b, log)
				began := time.Now()
				o := Options{Policy: policy, Estimates: "user", Placement: "gbatch"}
				for b.Loop() {
					if _, _, err := o.Replay(w, pool(w.Procs), Watch{Nanos: func() int64 { return int64(time.Since(began)) }}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(w.Jobs)), "ns/job")
			})
		}
	}
}
