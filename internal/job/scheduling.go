package job

import "fmt"

// readScheduling reads "scheduling" and checks what no single field shows.
func readScheduling(d *decoder, n *node, r *Request) {
	s := &r.Scheduling
	if !object(d, n, schedulingFields, s) {
		return
	}
	for _, alias := range [][2]string{{"minDuration", "killableAfter"}, {"reservationIds", "reservationId"}} {
		if given(n, alias[0]) && given(n, alias[1]) {
			d.problemAt(n, alias[1], fmt.Sprintf("is another name for %q, which is given too", alias[0]), "keep one of them")
		}
	}
	for _, key := range []string{"notBefore", "notAfter"} {
		if s.Interactive && given(n, key) {
			d.problemAt(n, key, "cannot be combined with \"interactive\": an interactive job starts at once or fails", "remove one of them")
		}
	}
	if s.NotBefore != 0 && s.NotAfter != 0 && s.NotBefore >= s.NotAfter {
		d.problemAt(n, "notAfter", fmt.Sprintf("must be later than notBefore (%s), is %s", s.NotBefore, s.NotAfter), "")
	}
	if s.MinDuration > s.MaxDuration && s.MaxDuration > 0 {
		d.note(fmt.Sprintf("minDuration (%s) is longer than maxDuration: the job is ended at maxDuration (%s)", s.MinDuration, s.MaxDuration))
	}
	if s.AllowHaltWithoutSignal && !s.Restartable {
		d.note("allowHaltWithoutSignal matters for restartable jobs only, and this job is not restartable")
	}
}

// given says that the object n has key with a value other than null.
func given(n *node, key string) bool {
	kid := n.child(key)
	return kid != nil && kid.kind != nullKind
}
