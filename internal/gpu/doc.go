// Package gpu finds a node's NVIDIA GPUs, watches their health, and gives
// containers exactly the GPUs that they were granted.
//
// [Open] makes a [Node] of the driver's management library, or of one with GPUs
// that do not exist, for trying things out; everything else treats it as any
// other. Its monitor keeps reading what there is and remembers GPUs that vanish
// and faults that the driver reports once only; its injector edits OCI specs.
//
// The package decides nothing about jobs: it says in words what is wrong with a
// GPU, and its caller chooses what follows. It knows no other vendor's devices;
// those come in by a site's own CDI files (see [InjectorConfig]).
//
// The driver's library is entered through dlopen, so that a program with this
// package starts on machines without one. A function that an old driver lacks
// ends the whole process when it is called: no function is used that came after
// the R450 driver, and older drivers are refused. The program must be linked
// with lazy binding (no -z now), or it needs the driver to start.
package gpu
