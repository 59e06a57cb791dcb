package sched

// account is who jobs belong to: a project, a user and a qos, with what is
// counted for them. Classes of equal accounts share one.
type account struct {
	accountKey
	refs    int // classes
	slot    int // in State.accountList
	tallies [ofBucket]*tally
}

type accountKey struct{ project, user, qos string }

func (s *State) accountOf(j *Job) *account {
	key := accountKey{j.Project, j.User, j.QOS}
	a := s.accounts[key]
	if a == nil {
		a = &account{accountKey: key, tallies: s.accountTallies(key)}
		a.slot = len(s.accountList)
		s.accounts[key], s.accountList = a, append(s.accountList, a)
	}
	return a
}

func (s *State) dropAccount(a *account) {
	if a.refs > 0 {
		return
	}
	delete(s.accounts, a.accountKey)
	last := len(s.accountList) - 1
	moved := s.accountList[last]
	s.accountList[a.slot], moved.slot = moved, a.slot
	s.accountList[last] = nil
	s.accountList = s.accountList[:last]
}
