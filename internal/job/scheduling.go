package job

import (
	"fmt"

	"gbatch/internal/document"
)

// readScheduling reads "scheduling" and checks what no single field shows.
func readScheduling(d *decoder, n *node, r *Request) {
	s := &r.Scheduling
	if !document.Object(d, n, schedulingFields, s) {
		return
	}
	for _, alias := range [][2]string{{"minDuration", "killableAfter"}, {"reservationIds", "reservationId"}} {
		if n.Given(alias[0]) != nil && n.Given(alias[1]) != nil {
			d.ProblemAt(n, alias[1], fmt.Sprintf("is another name for %q, which is given too", alias[0]), "keep one of them")
		}
	}
	for _, key := range []string{"notBefore", "notAfter"} {
		if s.Interactive && n.Given(key) != nil {
			d.ProblemAt(n, key, "cannot be combined with \"interactive\": an interactive job starts at once or fails", "remove one of them")
		}
	}
	if s.NotBefore != 0 && s.NotAfter != 0 && s.NotBefore >= s.NotAfter {
		d.ProblemAt(n, "notAfter", fmt.Sprintf("must be later than notBefore (%s), is %s", s.NotBefore, s.NotAfter), "")
	}
	if s.MinDuration > s.MaxDuration && s.MaxDuration > 0 {
		d.Note(n, fmt.Sprintf("minDuration (%s) is longer than maxDuration: the job is ended at maxDuration (%s)", s.MinDuration, s.MaxDuration))
	}
	if s.AllowHaltWithoutSignal && !s.Restartable {
		d.Note(n, "allowHaltWithoutSignal matters for restartable jobs only, and this job is not restartable")
	}
}
