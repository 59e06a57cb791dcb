package queue

import (
	"context"

	"gbatch/internal/api"
	"gbatch/internal/cli"
)

// strangers are those of the users who were named of whom the site has never heard. A
// user whom it knows is asked about once, however long the list is looked at.
type strangers struct {
	app   *cli.App
	known map[string]bool
	names []string
}

// ask takes in a list of the users' jobs, and asks about users who have none in it.
func (s *strangers) ask(ctx context.Context, users []string, list []api.Job) {
	for i := range list {
		s.known[list[i].User] = true
	}
	s.names = nil
	for _, name := range users {
		if s.known[name] {
			continue
		}
		if s.app.Unknown(ctx, []string{name}) != nil {
			s.names = append(s.names, name)
		} else {
			s.known[name] = true
		}
	}
}
