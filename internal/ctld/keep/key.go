package keep

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

// Key names the log of a rank in one attempt of a job. The UUID tells it from all
// that ever had the job's number.
type Key struct {
	User          string
	UUID          string // of the job, or of the task
	Attempt, Rank uint32
}

// userDir is a user's directory. Users come from anywhere: the name is one element
// of a path whatever it is, and never "..".
func userDir(user string) string { return "u-" + url.PathEscape(user) }

// path is the log's directory below the store's.
func (k Key) path() string {
	return filepath.Join(userDir(k.User), k.UUID[:2], fmt.Sprintf("%s.%d.%d", k.UUID, k.Attempt, k.Rank))
}

const uuidLen = 36

// parseKey is the inverse of path.
func parseKey(path string) (Key, bool) {
	parts := strings.Split(path, string(filepath.Separator))
	if len(parts) != 3 {
		return Key{}, false
	}
	escaped, ok := strings.CutPrefix(parts[0], "u-")
	user, err := url.PathUnescape(escaped)
	name := strings.Split(parts[2], ".")
	if !ok || err != nil || len(name) != 3 || len(name[0]) != uuidLen {
		return Key{}, false
	}
	attempt, err1 := strconv.ParseUint(name[1], 10, 32)
	rank, err2 := strconv.ParseUint(name[2], 10, 32)
	k := Key{User: user, UUID: name[0], Attempt: uint32(attempt), Rank: uint32(rank)}
	return k, err1 == nil && err2 == nil && k.path() == path
}

// parsePackDir is the inverse of packDir.
func parsePackDir(path string) (user string, ok bool) {
	escaped, ok := strings.CutPrefix(filepath.Dir(path), "u-")
	user, err := url.PathUnescape(escaped)
	return user, ok && err == nil && packDir(user) == path
}
