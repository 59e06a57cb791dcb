// Package vmtest proves that containers work on cgroup v2 alone and on v1 alone,
// whatever the machine it runs on has mounted: its test boots a small virtual
// machine in which the same program runs real containers, by the packages oci
// and cgroups, and reports on the console what held. The machine is emulated, so
// each container takes seconds: what does not depend on the control groups is
// tested where the code is. No other package uses it.
//
// A second guest, with control groups v2, a disk with project quotas and the
// kernel's network modules, runs tests of other packages as they are, in one
// boot: those whose subject is the kernel, of an older one than what most
// machines have on which we work.
//
// A third one runs a site on a disk of which the emulator notes each write, and others
// look at what is left of it where the power is lost after any of them.
//
// The tests need qemu and a kernel, which "make deps" brings to build/vm. What
// is missing is said, and they are skipped; with GBATCH_VMTEST_REQUIRED set,
// as "make test" does, that is a failure.
package vmtest
