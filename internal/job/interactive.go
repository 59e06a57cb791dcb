package job

// HasTerminal says whether the program gets a terminal that can be attached to.
func (s *Spec) HasTerminal() bool { return s.Gbatch != nil && s.Gbatch.Terminal }

// MakeInteractive makes the job one that starts at once or fails and that has a
// terminal. It returns Problems where the document asks for what that rules out.
func (s *Spec) MakeInteractive() error {
	var ps Problems
	add := func(path string, set bool) {
		if set {
			ps = append(ps, Problem{Path: path, Message: "cannot be combined with --interactive: an interactive job starts at once or fails", Hint: "remove one of them"})
		}
	}
	add("request.scheduling.notBefore", s.Request.Scheduling.NotBefore != 0)
	add("request.scheduling.notAfter", s.Request.Scheduling.NotAfter != 0)
	g := s.gbatch()
	add("gbatch.maxQueued", g.MaxQueued > 0)
	add("gbatch.dependencies", len(g.Dependencies) > 0)
	add("gbatch.tasks", g.Tasks != nil)
	add("gbatch.cron", len(g.Cron) > 0)
	if len(ps) > 0 {
		return ps
	}
	g.Terminal = true
	s.Gbatch = &g
	s.Request.Scheduling.Interactive = true
	return nil
}
