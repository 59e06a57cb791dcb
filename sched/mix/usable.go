package mix

import (
	"math"
	"slices"

	"gbatch/sched/nodes"
	"gbatch/sched/spec"
)

// Once is the free thousandths on GPUs of which one more job could take part, as
// FGD counts them.
func Once(shape *nodes.Shape, f nodes.Fit, _ *Free, gpus []int32) int64 {
	need := int32(min(shape.MilliGPU, spec.WholeGPU))
	var sum int64
	count := 0
	for g, free := range gpus {
		if free >= need && f.GPUs.Has(g) {
			sum += int64(free)
			count++
		}
	}
	if count < shape.Least() {
		return 0
	}
	return sum
}

// All is the free thousandths that as many more jobs as have room would take:
// what is left when the cores have run out is lost too.
func All(shape *nodes.Shape, f nodes.Fit, a *Free, gpus []int32) int64 {
	need := int32(min(shape.MilliGPU, spec.WholeGPU))
	var jobs int64
	for g, free := range gpus {
		if f.GPUs.Has(g) {
			jobs += int64(free / need)
		}
	}
	jobs /= int64(max(shape.WholeGPUs(), 1))
	if shape.MilliCPU > 0 {
		jobs = min(jobs, a.cpu/shape.MilliCPU)
	}
	switch {
	case shape.AllMem:
		jobs = min(jobs, 1)
	case shape.MemMiB > 0:
		jobs = min(jobs, a.mem/shape.MemMiB)
	}
	return jobs * shape.MilliGPU
}

// Score is the published score of a loss: 100 times the logistic function of the
// GPUs gained, as an integer. Losses that are close score the same.
func (m *Meter) Score(lost int64) int64 {
	var weight int64
	for _, w := range m.now().shapes {
		weight += w.weight
	}
	gained := -lost * 1000 / max(weight, 1) // millionths of a GPU
	at, _ := slices.BinarySearch(scores[:], gained+1)
	return int64(at)
}

// scores[s-1] is the least gain, in millionths of a GPU, that scores s.
var scores = func() (out [99]int64) {
	for i := range out {
		s := float64(i+1) / 100
		out[i] = int64(math.Ceil(1e6 * math.Log(s/(1-s))))
	}
	return out
}()
