package signals

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// holder holds all signals back while its child listens for USR1, as a shell does
// from before it starts a program until it runs again.
const holder = `
use POSIX;
$| = 1;
my $all = POSIX::SigSet->new;
$all->fillset;
sigprocmask(SIG_BLOCK, $all);
if (my $pid = fork) { waitpid $pid, 0; exit 9 }
$SIG{USR1} = sub { print "told\n"; exit 0 };
sigprocmask(SIG_UNBLOCK, $all);
print "$$\n";
select(undef, undef, undef, 0.02) while 1;
`

// A shell that holds signals back for a moment is not who a signal is for: it
// would die of it as soon as it takes signals again, and the job with it. An init
// that does so fetches them.
func TestHeldBack(t *testing.T) {
	perl, err := exec.LookPath("perl")
	if err != nil {
		t.Skip("SKIPPED, no perl on this machine")
	}
	for name, told := range map[string]bool{"sh": false, "init": true} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), name)
			data, err := os.ReadFile(perl)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(program, data, 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), program, "-e", holder)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			said := bufio.NewScanner(out)
			said.Scan()
			child, err := strconv.Atoi(said.Text())
			if err != nil {
				t.Fatalf("no child: %v", err)
			}
			got := aims(cmd.Process.Pid, []int{cmd.Process.Pid, child}, syscall.SIGUSR1)
			_ = unix.Kill(child, unix.SIGUSR1)
			said.Scan()
			_ = cmd.Wait()
			if said.Text() != "told" {
				t.Errorf("the child said %q", said.Text())
			}
			want := child
			if told {
				want = cmd.Process.Pid
			}
			if !slices.Equal(got, []int{want}) {
				t.Errorf("of %d and its child %d the signal is for %v", cmd.Process.Pid, child, got)
			}
		})
	}
}
