package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/hosttest"
	"gbatch/oci/image/imagetest"
)

// What all tests share: the programs, and a registry with an image that
// everyone may pull and one that wants a login.
var (
	bin        string // directory of the programs
	open       *registry
	private    *registry
	image      string // at open
	skipReason error  // why nothing can be tested here
)

// shares is how many processes have the tests among them: they mostly wait, for containers,
// for deadlines and for browsers. In each, nodes give jobs networks, and the machine's own
// is left alone.
const shares = 4

func TestMain(m *testing.M) {
	if err := executeWithoutNetlink(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	if os.Geteuid() == 0 && !hosttest.Own() {
		os.Exit(hosttest.Share(shares))
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if hosttest.Own() {
		if err := hosttest.RaiseLoopback(); err != nil {
			return 1, err
		}
	}
	dir, err := os.MkdirTemp("/tmp", "gbatch-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if skipReason = missing(); skipReason != nil {
		if os.Getenv("GBATCH_E2E_REQUIRED") != "" {
			return 1, skipReason
		}
		fmt.Fprintln(os.Stderr, "e2e: ALL TESTS SKIPPED:", skipReason)
		return m.Run(), nil
	}
	if bin = os.Getenv("GBATCH_BIN"); bin == "" {
		bin = filepath.Join(dir, "bin")
		if err := buildPrograms(bin); err != nil {
			return 1, err
		}
	}
	if open, err = startRegistry(filepath.Join(dir, "open"), nil); err != nil {
		return 1, err
	}
	defer open.stop()
	if private, err = startRegistry(filepath.Join(dir, "private"), &login); err != nil {
		return 1, err
	}
	defer private.stop()
	if image, err = open.push("demo/box:1", imagetest.Options{Busybox: true}); err != nil {
		return 1, err
	}
	if _, err = private.push("secret/box:1", imagetest.Options{Busybox: true}); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// missing says what this machine lacks.
func missing() error {
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("containers need root: run as root"))
	}
	for program, pkg := range map[string]string{"docker-registry": "docker-registry", "htpasswd": "apache2-utils"} {
		if _, err := exec.LookPath(program); err != nil {
			errs = append(errs, fmt.Errorf("%s is missing: install the package %s", program, pkg))
		}
	}
	if _, err := imagetest.Busybox(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func needs(t *testing.T) {
	t.Helper()
	if skipReason != nil {
		t.Skip("SKIPPED: ", skipReason)
	}
}

// buildPrograms builds what `make build` does.
func buildPrograms(to string) error {
	mains, err := filepath.Glob("../../cmd/*/main.go")
	if err != nil {
		return err
	}
	if out, err := exec.Command("../../scripts/build-shim").CombinedOutput(); err != nil {
		return fmt.Errorf("build what gnoded carries: %w\n%s", err, out)
	}
	if out, err := exec.Command("../../scripts/build-web").CombinedOutput(); err != nil {
		return fmt.Errorf("build the web page: %w\n%s", err, out)
	}
	for _, cgo := range []string{"0", "1"} {
		args := []string{"build", "-buildvcs=false", "-tags", "seccomp embedshim embedweb", "-o", to + "/"}
		for _, main := range mains {
			if name := filepath.Base(filepath.Dir(main)); (name == "gnoded") == (cgo == "1") {
				args = append(args, "gbatch/cmd/"+name)
			}
		}
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build programs: %w\n%s", err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
