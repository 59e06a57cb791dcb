package predict

import "gbatch/sched/spec"

// corrections lengthen a predicted run time each time that it is exceeded
// (Tsafrir et al. 2007).
var corrections = []spec.Time{spec.Minute, 5 * spec.Minute, 15 * spec.Minute, 30 * spec.Minute, spec.Hour, 2 * spec.Hour, 5 * spec.Hour, 10 * spec.Hour, 20 * spec.Hour, 50 * spec.Hour, 100 * spec.Hour}

// Lengthened is the prediction that holds after a job ran for so long.
func Lengthened(predicted, ran spec.Time) spec.Time {
	for i := 0; predicted <= ran; i++ {
		predicted += corrections[min(i, len(corrections)-1)]
		if i > 1000 {
			return ran + corrections[len(corrections)-1]
		}
	}
	return predicted
}
