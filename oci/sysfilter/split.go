//go:build seccomp && cgo

package sysfilter

import (
	"slices"
	"sync"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
)

// Split makes two profiles of one. What both admit is what that admits, and what they refuse
// they refuse as it does. The first admits, beside that, all that containers are made by: a thread
// enters it before it begins any, and makes its filter once. The second is a short list of what is
// refused, for the container's first process, which needs a tenth of the time for it. False: the
// profile is not of the kind that can be split.
func Split(profile *specs.LinuxSeccomp) (before Before, within *specs.LinuxSeccomp, ok bool) {
	if profile == nil || profile.DefaultAction != specs.ActErrno || profile.DefaultErrnoRet == nil ||
		len(profile.Architectures) != 1 || len(profile.Flags) > 0 || profile.ListenerPath != "" {
		return before, nil, false
	}
	byName, ok := rulesByName(profile)
	if !ok {
		return before, nil, false
	}
	before.errno = *profile.DefaultErrnoRet
	within = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Architectures: profile.Architectures}
	var refused []string
	all, found := names(), 0
	for number, name := range all {
		if len(byName[name]) > 0 {
			before.last, found = number, found+1
		}
	}
	if found != len(byName) { // some go by another one's number, or are another set's
		return before, nil, false
	}
	for number, name := range all[:before.last+1] {
		rules := byName[name]
		switch {
		case name == "":
			continue // no system call: refused by the first
		case len(rules) == 0:
			refused = append(refused, name)
		case name == "clone" && len(rules[0].Args) > 0:
			bits, ok := withoutBits(rules, before.errno)
			if !ok {
				return before, nil, false
			}
			within.Syscalls = append(within.Syscalls, bits...)
		case len(rules[0].Args) > 0:
			before.conditional = append(before.conditional, rules...)
			continue
		case rules[0].Action == specs.ActErrno:
			within.Syscalls = append(within.Syscalls, rules[0])
		}
		before.admitted = append(before.admitted, libseccomp.ScmpSyscall(number))
	}
	if len(refused) > 0 {
		within.Syscalls = append(within.Syscalls, specs.LinuxSyscall{Names: refused, Action: specs.ActErrno, ErrnoRet: &before.errno})
	}
	return before, within, before.last > 0
}

// names are those of the machine's own system calls, at their numbers.
var names = sync.OnceValue(func() []string {
	list := make([]string, 1024)
	for number := range list {
		list[number], _ = libseccomp.ScmpSyscall(number).GetName() // an error: there is none
	}
	return list
})

// rulesByName are a profile's rules, each with one name. False: there are some that Split does
// not know what to do with.
func rulesByName(profile *specs.LinuxSeccomp) (map[string][]specs.LinuxSyscall, bool) {
	byName := map[string][]specs.LinuxSyscall{}
	for _, r := range profile.Syscalls {
		if r.Action == specs.ActErrno && (r.ErrnoRet == nil || len(r.Args) > 0) || r.Action != specs.ActErrno && r.Action != specs.ActAllow {
			return nil, false
		}
		for _, name := range r.Names {
			one, have := r, byName[name]
			one.Names = []string{name}
			always := len(have) > 0 && len(have[0].Args) == 0
			switch {
			case always && len(r.Args) == 0 && r.Action == specs.ActAllow && have[0].Action == r.Action: // twice the same
			case always, len(have) > 0 && len(r.Args) == 0:
				return nil, false
			default:
				byName[name] = append(have, one)
			}
		}
	}
	return byName, true
}

// withoutBits refuses a system call by each bit that its only rule wants to be zero.
func withoutBits(rules []specs.LinuxSyscall, errno uint) (out []specs.LinuxSyscall, ok bool) {
	if len(rules) != 1 || len(rules[0].Args) != 1 || rules[0].Args[0].Op != specs.OpMaskedEqual || rules[0].Args[0].ValueTwo != 0 {
		return nil, false
	}
	arg := rules[0].Args[0]
	for bit := uint64(1); bit != 0; bit <<= 1 {
		if arg.Value&bit != 0 {
			args := []specs.LinuxSeccompArg{{Index: arg.Index, Value: bit, ValueTwo: bit, Op: specs.OpMaskedEqual}}
			out = append(out, specs.LinuxSyscall{Names: rules[0].Names, Action: specs.ActErrno, ErrnoRet: &errno, Args: args})
		}
	}
	return out, true
}

// Before is what a thread is confined to that begins containers: see Split.
type Before struct {
	errno       uint
	last        int // a higher number is one that nobody here knows
	admitted    []libseccomp.ScmpSyscall
	conditional []specs.LinuxSyscall
}

// Same says whether both make the same filters.
func (b Before) Same(o Before) bool {
	return b.errno == o.errno && b.last == o.last && slices.Equal(b.admitted, o.admitted) && slices.EqualFunc(b.conditional, o.conditional, func(x, y specs.LinuxSyscall) bool {
		return x.Names[0] == y.Names[0] && slices.Equal(x.Args, y.Args)
	})
}
