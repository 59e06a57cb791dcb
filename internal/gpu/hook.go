package gpu

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-cdi-hook/commands"
	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v3"
)

// hookName is what this program is called when a container's hook runs it.
const hookName = "gnoded-cdi-hook"

// RunHook takes the process over if it was started as a container's hook, and
// does not return then. A program that edits specs by an Injector must call it
// first thing in main.
func RunHook() {
	if len(os.Args) == 0 || filepath.Base(os.Args[0]) != hookName {
		return
	}
	log := logrus.New()
	log.SetLevel(logrus.WarnLevel)
	root := commands.ConfigureCDIHookCommand(log, &cli.Command{
		Name:  hookName,
		Usage: "prepare a container's root for the driver files that are mounted into it",
	})
	if err := root.Run(context.Background(), os.Args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// linkHook makes the name by which hooks run this program. It is made anew at
// each start, because an upgrade may have put the program elsewhere.
func linkHook(dir string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own program: %w", err)
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", fmt.Errorf("make directory for hooks: %w", err)
	}
	link := filepath.Join(dir, hookName)
	if old, err := os.Readlink(link); err == nil && old == self {
		return link, nil
	}
	tmp := link + ".new"
	_ = os.Remove(tmp)
	if err := os.Symlink(self, tmp); err != nil {
		return "", fmt.Errorf("link hook: %w", err)
	}
	if err := os.Rename(tmp, link); err != nil {
		return "", fmt.Errorf("link hook: %w", err)
	}
	return link, nil
}

// ldconfigPath is the host's program that lists libraries. Debian and its
// children keep the real one behind a script.
func ldconfigPath() string {
	const real = "/sbin/ldconfig.real"
	if _, err := os.Stat(real); err == nil {
		return real
	}
	return "/sbin/ldconfig"
}

// toolkitLog takes the chatter of NVIDIA's toolkit: it warns of each optional
// file that a driver does not have.
type toolkitLog struct{ log *slog.Logger }

func (l toolkitLog) Debugf(string, ...any)               {}
func (l toolkitLog) Tracef(string, ...any)               {}
func (l toolkitLog) Infof(format string, args ...any)    { l.debug(format, args) }
func (l toolkitLog) Warningf(format string, args ...any) { l.debug(format, args) }
func (l toolkitLog) Errorf(format string, args ...any) {
	l.log.Warn("CDI: " + fmt.Sprintf(format, args...))
}
func (l toolkitLog) debug(format string, args []any) {
	l.log.Debug("CDI: " + fmt.Sprintf(format, args...))
}
