package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gbatch/internal/control"
	"gbatch/internal/ctld/site"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// secretFiles are the key files that, once used, must stay what they are: what
// they signed or sealed is worth nothing without them.
var secretFiles = []string{"ca.key", site.TokenKeyFile, site.VaultFile}

// CheckKeys compares the key files of a controller's directory with those that
// its store knows. It must be called before any is made anew.
func CheckKeys(dir string, st *store.Store) error {
	var wrong []error
	for _, name := range secretFiles {
		want, used, err := st.Get(state.Record{Kind: state.KindKeyFile, Name: name})
		if err != nil {
			return err
		}
		if !used {
			continue
		}
		what := "is not the file that this controller has used"
		have, err := fingerprint(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			what = "is gone"
		} else if err != nil {
			return err
		}
		if have != string(want) {
			wrong = append(wrong, fmt.Errorf("%s %s: put it back, from a backup by hand if need be; or go on with a new one, and lose what it %s, by `gctld accept-loss %s`",
				filepath.Join(dir, name), what, use(name), name))
		}
	}
	return errors.Join(wrong...)
}

// use says what is lost with a key file.
func use(name string) string {
	switch name {
	case "ca.key":
		return "signed (all nodes and clients join anew)"
	case site.TokenKeyFile:
		return "signed (all tokens)"
	}
	return "sealed (secrets and registry passwords of jobs that have not ended)"
}

// NoteKeys has the store know the key files, which are all there now.
func NoteKeys(dir string, st *store.Store) error {
	var records []state.Record
	for _, name := range secretFiles {
		have, err := fingerprint(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("note the key files: %w", err)
		}
		r := state.Record{Kind: state.KindKeyFile, Name: name, Value: []byte(have)}
		if known, _, err := st.Get(r); err != nil {
			return err
		} else if string(known) != have {
			records = append(records, r)
		}
	}
	return st.Commit(records)
}

// forgetKeys has the store not know key files any more.
func forgetKeys(st *store.Store, names ...string) error {
	var records []state.Record
	for _, name := range names {
		records = append(records, state.Record{Kind: state.KindKeyFile, Name: name})
	}
	return st.Commit(records)
}

// fingerprint tells one key from another and says nothing of either.
func fingerprint(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// AcceptLoss makes a controller go on without what it has lost: a key file by its
// name, or commits by the token that the refused start gave.
func AcceptLoss(c site.Config, what string) error {
	if err := errors.Join(c.Alone(), c.CheckFiles()); err != nil {
		return err
	}
	cfg := store.Config{Dir: filepath.Join(c.Dir, site.StoreDir), Recent: c.RecentPath()}
	if slices.Contains(secretFiles, what) {
		st, err := store.Open(cfg)
		if err != nil {
			return err
		}
		err = setAside(filepath.Join(c.Dir, what)) // first: a wrong file that stays would be taken for the right one
		if err == nil {
			err = forgetKeys(st, what)
		}
		return errors.Join(err, st.Close())
	}
	if !strings.Contains(what, "-") {
		return fmt.Errorf("%q names no loss: start gctld and take what it says, as 8000-6473, or one of %s", what, strings.Join(secretFiles, ", "))
	}
	st, err := store.Accept(cfg, what)
	if err != nil {
		return err
	}
	return errors.Join(goOn(st, control.Restored{Skip: defaultSkip}), st.Close())
}

// setAside keeps a key file that is not the right one, under another name.
func setAside(path string) error {
	if err := os.Rename(path, path+".unused"); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
