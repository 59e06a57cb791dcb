//go:build seccomp && cgo

package sysfilter

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"
	"unsafe"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

// instruction is one of a filter's.
type instruction = unix.SockFilter

// made are the filters that were made last: a shim has the same for all its containers.
var made struct {
	sync.Mutex
	of       Before
	programs [][]instruction
}

// Enter confines this thread, and what it begins. It cannot be taken back.
func (b Before) Enter() error {
	programs, err := b.programs()
	if err != nil {
		return fmt.Errorf("make the filter of system calls: %w", err)
	}
	for _, p := range programs {
		prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
		if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
			return fmt.Errorf("enter the filter of system calls: %w", errno)
		}
	}
	return nil
}

// programs are a filter of the system calls that are known, and one of the others, which are told
// to be unknown, as older kernels do: programs then do without them. Of two that refuse, the
// kernel answers by the last.
func (b Before) programs() ([][]instruction, error) {
	made.Lock()
	defer made.Unlock()
	if made.programs != nil && made.of.Same(b) {
		return made.programs, nil
	}
	known, err := b.known()
	if err != nil {
		return nil, err
	}
	made.of, made.programs = b, [][]instruction{known, unknown(uint32(b.last))}
	return made.programs, nil
}

func (b Before) known() ([]instruction, error) {
	f, err := libseccomp.NewFilter(libseccomp.ActErrno.SetReturnCode(int16(b.errno)))
	if err != nil {
		return nil, err
	}
	defer f.Release()
	if err := f.SetOptimize(2); err != nil { // a tree, as libcontainer's
		return nil, err
	}
	for _, call := range b.admitted {
		if err := f.AddRule(call, libseccomp.ActAllow); err != nil {
			return nil, err
		}
	}
	for _, r := range b.conditional {
		call, err := libseccomp.GetSyscallFromName(r.Names[0])
		if err != nil {
			return nil, err
		}
		var all []libseccomp.ScmpCondition
		for _, a := range r.Args {
			one, err := condition(a)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		if err := f.AddRuleConditional(call, libseccomp.ActAllow, all); err != nil {
			return nil, err
		}
	}
	return export(f)
}

var comparisons = map[specs.LinuxSeccompOperator]libseccomp.ScmpCompareOp{
	specs.OpEqualTo: libseccomp.CompareEqual, specs.OpNotEqual: libseccomp.CompareNotEqual,
	specs.OpLessThan: libseccomp.CompareLess, specs.OpLessEqual: libseccomp.CompareLessOrEqual,
	specs.OpGreaterThan: libseccomp.CompareGreater, specs.OpGreaterEqual: libseccomp.CompareGreaterEqual,
	specs.OpMaskedEqual: libseccomp.CompareMaskedEqual,
}

func condition(a specs.LinuxSeccompArg) (libseccomp.ScmpCondition, error) {
	op, ok := comparisons[a.Op]
	if !ok {
		return libseccomp.ScmpCondition{}, fmt.Errorf("unknown comparison %q", a.Op)
	}
	return libseccomp.MakeCondition(a.Index, op, a.Value, a.ValueTwo)
}

// export is a filter as the kernel takes it.
func export(f *libseccomp.ScmpFilter) ([]instruction, error) {
	fd, err := unix.MemfdCreate("filter", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "filter")
	defer file.Close()
	if err := f.ExportBPF(file); err != nil {
		return nil, err
	}
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	out := make([]instruction, int(end)/int(unsafe.Sizeof(instruction{})))
	return out, binary.Read(io.NewSectionReader(file, 0, end), binary.NativeEndian, out)
}

// What a filter of the kernel reads of a call, by its place.
const (
	atNumber = 0
	x32      = 0x40000000 // in numbers of amd64: another set of calls, which the other filter refuses
)

// unknown tells of each number above the last one that there is no such call.
func unknown(last uint32) []instruction {
	return []instruction{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: atNumber},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jt: 1, K: x32},
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, Jt: 1, K: last},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
	}
}
