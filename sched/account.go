package sched

// account is who jobs belong to: a project, a user and a qos, with what is
// counted for them. Classes of equal accounts share one.
type account struct {
	accountKey
	refs    int // classes
	tallies [ofBucket]*tally

	points int64 // of its fair share, in the current round
}

type accountKey struct{ project, user, qos string }

func (s *State) accountOf(j *Job) *account {
	key := accountKey{j.Project, j.User, j.QOS}
	a := s.accounts[key]
	if a == nil {
		a = &account{accountKey: key, tallies: s.accountTallies(key)}
		s.accounts[key] = a
	}
	return a
}

func (s *State) dropAccount(a *account) {
	if a.refs == 0 {
		delete(s.accounts, a.accountKey)
	}
}
