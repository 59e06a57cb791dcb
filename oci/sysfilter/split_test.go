//go:build seccomp && cgo

package sysfilter

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestSplit: of each call, with arguments of all kinds, the two halves together say what the
// whole profile does as libcontainer makes a filter of it.
func TestSplit(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED, the calls that are tried are those of amd64")
	}
	for name, caps := range map[string][]string{"usual": {"CAP_CHOWN"}, "traces": {"CAP_SYS_PTRACE"}, "much": {"CAP_SYS_ADMIN", "CAP_BPF", "CAP_SYS_TIME"}} {
		t.Run(name, func(t *testing.T) {
			spec := &specs.Spec{Linux: &specs.Linux{}, Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: caps}}}
			profile, err := Profile(spec, false)
			if err != nil {
				t.Fatal(err)
			}
			before, within, ok := Split(profile)
			if !ok {
				t.Fatal("it is not split")
			}
			programs, err := before.programs()
			if err != nil {
				t.Fatal(err)
			}
			whole := []*bpf.VM{machine(t, filterOf(t, profile)), machine(t, unknown(uint32(before.last)))}
			halves := []*bpf.VM{machine(t, programs[0]), machine(t, programs[1]), machine(t, filterOf(t, within))}
			answers := map[uint32]int{}
			for call := range calls() {
				want, got := answer(t, whole, call), answer(t, halves, call)
				if want != got {
					t.Fatalf("call %x: %x, want %x", call, got, want)
				}
				answers[want]++
			}
			t.Logf("%d and %d rules, answers %x", len(before.admitted)+len(before.conditional), len(within.Syscalls), answers)
			if len(answers) < 4 { // admitted, refused, unknown, another set of calls
				t.Errorf("there are only %d different answers", len(answers))
			}
		})
	}
}

// TestSplitNot: what Split does not know it leaves as it is.
func TestSplitNot(t *testing.T) {
	one := func(r specs.LinuxSyscall) *specs.LinuxSeccomp {
		return &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, DefaultErrnoRet: new(uint(1)), Architectures: []specs.Arch{specs.ArchX86_64}, Syscalls: []specs.LinuxSyscall{r}}
	}
	write := specs.LinuxSyscall{Names: []string{"write"}, Action: specs.ActAllow}
	if _, _, ok := Split(one(write)); !ok {
		t.Error("what can be split is not")
	}
	cases := map[string]func(*specs.LinuxSeccomp){
		"kills":        func(p *specs.LinuxSeccomp) { p.DefaultAction = specs.ActKillProcess },
		"several sets": func(p *specs.LinuxSeccomp) { p.Architectures = append(p.Architectures, specs.ArchX86) },
		"traces":       func(p *specs.LinuxSeccomp) { p.Syscalls[0].Action = specs.ActTrace },
		"other names":  func(p *specs.LinuxSeccomp) { p.Syscalls[0].Names = append(p.Syscalls[0].Names, "socketcall") },
		"flags":        func(p *specs.LinuxSeccomp) { p.Flags = append(p.Flags, specs.LinuxSeccompFlagLog) },
		"refuses some": func(p *specs.LinuxSeccomp) {
			p.Syscalls[0].Action, p.Syscalls[0].Args = specs.ActErrno, []specs.LinuxSeccompArg{{Op: specs.OpEqualTo}}
		},
		"both": func(p *specs.LinuxSeccomp) {
			p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{"write"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{{Op: specs.OpEqualTo}}})
		},
		"other clone": func(p *specs.LinuxSeccomp) {
			p.Syscalls[0].Names, p.Syscalls[0].Args = []string{"clone"}, []specs.LinuxSeccompArg{{Op: specs.OpEqualTo}}
		},
	}
	for name, edit := range cases {
		p := one(write)
		edit(p)
		if _, _, ok := Split(p); ok {
			t.Errorf("%s: it is split", name)
		}
	}
}

// filterOf makes a filter of a profile as libcontainer does, without the answer for unknown calls.
func filterOf(t *testing.T, p *specs.LinuxSeccomp) []instruction {
	t.Helper()
	act := func(a specs.LinuxSeccompAction, errno *uint) libseccomp.ScmpAction {
		if a == specs.ActAllow {
			return libseccomp.ActAllow
		}
		return libseccomp.ActErrno.SetReturnCode(int16(*errno))
	}
	f, err := libseccomp.NewFilter(act(p.DefaultAction, p.DefaultErrnoRet))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	for _, r := range p.Syscalls {
		for _, name := range r.Names {
			call, err := libseccomp.GetSyscallFromName(name)
			if err != nil {
				continue
			}
			var all []libseccomp.ScmpCondition
			for _, a := range r.Args {
				one, err := condition(a)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, one)
			}
			if err := f.AddRuleConditional(call, act(r.Action, r.ErrnoRet), all); err != nil {
				t.Fatal(name, err)
			}
		}
	}
	out, err := export(f)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func machine(t *testing.T, filter []instruction) *bpf.VM {
	t.Helper()
	var raw []bpf.RawInstruction
	for _, i := range filter {
		raw = append(raw, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("an instruction that is none")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// answer is the kernel's by several filters, the last of which was entered last.
func answer(t *testing.T, filters []*bpf.VM, call []byte) (out uint32) {
	t.Helper()
	out = unix.SECCOMP_RET_ALLOW
	for _, vm := range slices.Backward(filters) {
		n, err := vm.Run(call)
		if err != nil {
			t.Fatal(err)
		}
		if a := uint32(n); int32(a&unix.SECCOMP_RET_ACTION_FULL) < int32(out&unix.SECCOMP_RET_ACTION_FULL) {
			out = a
		}
	}
	return out
}

// calls are what the kernel shows to filters, its words as the machine here reads them.
func calls() func(func([]byte) bool) {
	random := rand.New(rand.NewPCG(1, 2))
	values := []uint64{0, 1, 8, 37, 38, 39, 40, 41, 0x20000, 0x20008, 0x20001, 0xffffffff, 1<<32 + 8, 1<<32 + 40, ^uint64(0), unix.CLONE_VM | unix.CLONE_THREAD}
	for bit := range 64 {
		values = append(values, 1<<bit)
	}
	return func(yield func([]byte) bool) {
		for _, arch := range []uint32{unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_AARCH64} {
			for _, set := range []uint32{0, x32, 0x80000000} {
				for number := range uint32(700) {
					for _, v := range values {
						call := make([]byte, 64)
						put := func(at int, v uint32) { binary.BigEndian.PutUint32(call[at:], v) }
						put(0, number|set)
						put(4, arch)
						for arg := range 6 {
							if arg > 0 {
								v = values[random.IntN(len(values))]
							}
							put(16+8*arg, uint32(v))
							put(20+8*arg, uint32(v>>32))
						}
						if !yield(call) {
							return
						}
					}
				}
			}
		}
	}
}
