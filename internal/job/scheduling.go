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

// checkSpec checks what spans several parts of the document.
func (d *decoder) checkSpec(n *node, s *Spec) {
	g := s.Gbatch
	if g == nil {
		return
	}
	gn := n.child("gbatch")
	d.push("gbatch")
	defer d.pop()
	d.checkNetwork(gn, s)
	if g.MaxQueued > 0 && s.Request.Scheduling.Interactive {
		d.problemAt(gn, "maxQueued", "cannot be combined with \"interactive\": an interactive job starts at once or fails", "remove one of them")
	}
	d.checkWarning(gn, s)
	d.checkHalt(gn, s)
	if memory := s.Request.Resources.CPUMemoryGB; memory > 0 && g.ShmSizeMB > memory*1024 {
		d.problemAt(gn, "shmSizeMb", fmt.Sprintf("must be at most the job's memory, %d, is %d", memory*1024, g.ShmSizeMB), "raise request.resources.cpuMemoryGb")
	}
	for i, m := range s.Request.Docker.Storage {
		if g.ShmSizeMB > 0 && m.ContainerPath == shmPath {
			d.problemAt(gn, "shmSizeMb", fmt.Sprintf("sets the size of /dev/shm, as request.docker.storage[%d] does", i), "keep one of them")
		}
	}
}
