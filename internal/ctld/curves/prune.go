package curves

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// perFile is what a file takes on the disk: a block.
const perFile = 4 << 10

// kept is a file.
type kept struct {
	path string
	at   time.Time
}

// prune removes the oldest files of whoever has most while there are too many, so
// that nobody's many short jobs take the place of what others have.
func (s *Store) prune() {
	users := map[string][]kept{}
	total := int64(0)
	err := filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // it went meanwhile
		}
		if info, err := d.Info(); err == nil {
			user := filepath.Dir(path)
			users[user] = append(users[user], kept{path, info.ModTime()})
			total += perFile
		}
		return nil
	})
	if err != nil {
		s.Log.Error("look through what ranks used", "error", err)
	}
	for _, list := range users {
		slices.SortFunc(list, func(a, b kept) int { return b.at.Compare(a.at) }) // the oldest at the end
	}
	for most := s.Most(); total > most; total -= perFile {
		has := ""
		for user, list := range users {
			if n := len(list) - len(users[has]); n > 0 || n == 0 && user < has {
				has = user
			}
		}
		list := users[has]
		if err := os.Remove(list[len(list)-1].path); err != nil {
			s.Log.Error("remove what a rank used", "error", err)
			return
		}
		users[has] = list[:len(list)-1]
	}
}
