package sim

import "gbatch/sched"

// The log has whole seconds, and thousands of them have more than one job. Under
// a strict first-come queue the order within a second moves the mean wait by a
// third, so a comparison with the published schedules needs theirs. They sorted
// the log by time, and then sorted it by time once more with the quicksort of
// numpy, which does not keep equal ones in order. So does this.

// quicksortRun is how many jobs that sort leaves to insertion, which keeps equal
// ones in order.
const quicksortRun = 16

// phillyTies gives jobs that are sorted by time, lines of one second in the
// order of the log, the published order within a second.
func phillyTies(jobs []Job) {
	for len(jobs) > quicksortRun {
		p := partition(jobs)
		phillyTies(jobs[:p])
		jobs = jobs[p+1:]
	}
	for i := 1; i < len(jobs); i++ {
		for k := i; k > 0 && jobs[k].Submit < jobs[k-1].Submit; k-- {
			jobs[k], jobs[k-1] = jobs[k-1], jobs[k]
		}
	}
}

// partition puts jobs that are not later than a pivot, the median of three,
// before it, those that are not earlier behind it, and returns its place.
func partition(jobs []Job) int {
	at := func(i int) sched.Time { return jobs[i].Submit }
	swap := func(i, k int) { jobs[i], jobs[k] = jobs[k], jobs[i] }
	last := len(jobs) - 1
	mid := last / 2
	if at(mid) < at(0) {
		swap(mid, 0)
	}
	if at(last) < at(mid) {
		swap(last, mid)
	}
	if at(mid) < at(0) {
		swap(mid, 0)
	}
	pivot := at(mid)
	i, k := 0, last-1
	swap(mid, k)
	for {
		for i++; at(i) < pivot; i++ {
		}
		for k--; pivot < at(k); k-- {
		}
		if i >= k {
			swap(i, last-1)
			return i
		}
		swap(i, k)
	}
}
