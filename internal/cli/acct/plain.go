package acct

import (
	"strconv"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/node"
)

// plain are the cells of columns that programs read otherwise than people: lengths of
// time in seconds, sizes in bytes, times in UTC, numbers without a unit. What is not
// known is empty.
var plain = map[string]func(b []byte, j *api.PastJob) []byte{
	"submit": moment(func(j *api.PastJob) time.Time { return j.Submitted }),
	"start":  moment(func(j *api.PastJob) time.Time { return j.Started }),
	"end":    moment(func(j *api.PastJob) time.Time { return j.Ended }),
	"elapsed": whole(func(j *api.PastJob) (int64, bool) {
		if j.Used == nil {
			return 0, false
		}
		return j.Used.ElapsedS, true
	}),
	"wait": whole(func(j *api.PastJob) (int64, bool) {
		return int64(j.Started.Sub(j.Submitted) / time.Second), !j.Started.IsZero()
	}),
	"limit": whole(func(j *api.PastJob) (int64, bool) { return j.LimitS, j.LimitS > 0 }),
	"mem":   whole(func(j *api.PastJob) (int64, bool) { return j.MemBytes, true }),
	"peakmem": whole(func(j *api.PastJob) (int64, bool) {
		if j.Used == nil {
			return 0, false
		}
		return j.Used.PeakMem, true
	}),
	"cputime": number(func(j *api.PastJob) (float64, bool) {
		if j.Used == nil {
			return 0, false
		}
		return j.Used.CPUTimeS, true
	}),
	"gpuutil":    ofGPU(func(g *node.GPUUse) float64 { return g.Utilization }),
	"gpuutilmax": ofGPU(func(g *node.GPUUse) float64 { return g.MaxUtilization }),
	"gpumem":     ofGPU(func(g *node.GPUUse) float64 { return float64(g.MaxMem) }),
	"energy":     ofGPU(func(g *node.GPUUse) float64 { return g.EnergyJ }),
}

func moment(of func(*api.PastJob) time.Time) func([]byte, *api.PastJob) []byte {
	return func(b []byte, j *api.PastJob) []byte {
		if t := of(j); !t.IsZero() {
			b = t.UTC().AppendFormat(b, time.RFC3339)
		}
		return b
	}
}

func whole(of func(*api.PastJob) (n int64, known bool)) func([]byte, *api.PastJob) []byte {
	return func(b []byte, j *api.PastJob) []byte {
		if n, known := of(j); known {
			b = strconv.AppendInt(b, n, 10)
		}
		return b
	}
}

func number(of func(*api.PastJob) (n float64, known bool)) func([]byte, *api.PastJob) []byte {
	return func(b []byte, j *api.PastJob) []byte {
		if n, known := of(j); known {
			b = strconv.AppendFloat(b, n, 'f', -1, 64)
		}
		return b
	}
}

// ofGPU is a figure of the GPUs; those that are made up are left out.
func ofGPU(of func(*node.GPUUse) float64) func([]byte, *api.PastJob) []byte {
	return number(func(j *api.PastJob) (float64, bool) {
		if j.Used == nil || j.Used.GPU == nil || j.Used.GPU.Samples == 0 || j.Used.GPU.Simulated {
			return 0, false
		}
		return of(j.Used.GPU), true
	})
}
